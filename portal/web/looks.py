"""What states and verdicts are drawn as, and which icons there are: the one home of these choices."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from django.conf import settings

from portal.jobs.models import State


@dataclass(frozen=True, slots=True)
class StateLook:
    """What a job's state is drawn as; its word is its label. `tone` names its colour in bars and favicons."""

    icon: str
    tone: str


STATES: dict[State, StateLook] = {
    State.SUBMITTED: StateLook("send", "neutral"),
    State.QUEUED: StateLook("hourglass-split", "queued"),
    State.STARTING: StateLook("circle-half", "starting"),
    State.RUNNING: StateLook("play-circle-fill", "running"),
    State.CANCELLING: StateLook("slash-circle", "neutral"),
    State.SUCCEEDED: StateLook("check-circle-fill", "succeeded"),
    State.FAILED: StateLook("x-octagon-fill", "failed"),
    State.CANCELLED: StateLook("slash-circle-fill", "neutral"),
    State.REJECTED: StateLook("dash-circle-fill", "failed"),
    State.LOST: StateLook("question-diamond-fill", "lost"),
}

# What a verdict on waiting or fit looks like, by its kind: its tone (bt-verdict--<tone>) and its icon.
VERDICTS: dict[str, tuple[str, str]] = {
    "now": ("good", "play-circle-fill"),
    "ahead": ("queued", "hourglass-split"),
    "no-room": ("queued", "hourglass-split"),
    "pieces": ("queued", "puzzle"),
    "team-limit": ("queued", "people"),
    "held": ("queued", "person-lock"),
    "never": ("bad", "x-octagon-fill"),
    "misconfigured": ("bad", "wrench"),
    "image": ("bad", "box-seam"),
    "node": ("bad", "hdd-network"),
    "no-word": ("lost", "question-diamond-fill"),
    "incomplete": ("neutral", "pencil"),
    "unknown": ("neutral", "question-diamond-fill"),
}


def known_state(state: object) -> State:
    """A state by its value; an unheard-of one reads as lost rather than as something it is not."""
    return State(str(state)) if str(state) in State.values else State.LOST


@lru_cache(maxsize=1)
def known_icons() -> frozenset[str]:
    """The names in the sprite, from the list that it is built of."""
    lines = (Path(settings.BASE_DIR) / "static" / "vendor" / "icons.txt").read_text(encoding="utf-8").splitlines()
    return frozenset(line for line in lines if line and not line.startswith("#"))
