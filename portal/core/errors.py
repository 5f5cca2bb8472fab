"""The typed errors of the house. A door translates them: a form error in `web`, a problem document in `api`."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with what was asked.

    `field` is the path of the field in the request, dots between levels ("values.gpus", "name"), "" for the whole.
    `message` names the fault and the remedy in one or two short sentences.
    """

    field: str
    message: str
    code: str = "invalid"


class BeamtimeError(Exception):
    """Base of every error that a verb of the house may raise on purpose."""


class Refused(BeamtimeError):
    """The deed is not possible as asked; nothing was changed. Carries every problem found, not only the first."""

    def __init__(self, problems: Sequence[Problem] | Problem) -> None:
        self.problems: tuple[Problem, ...] = (problems,) if isinstance(problems, Problem) else tuple(problems)
        super().__init__(" ".join(f"{p.field}: {p.message}" if p.field else p.message for p in self.problems))


class Conflicting(BeamtimeError):
    """The deed contradicts one that was already done, such as another body under the same idempotency key."""


class Missing(BeamtimeError):
    """No such thing, or not open to this person: the two are never told apart."""


class Forbidden(BeamtimeError):
    """The person may see the thing but not do this to it."""


class Gone(BeamtimeError):
    """It was there and was given up by a rule. The message says when and by which."""


class Corrupt(BeamtimeError):
    """What is stored is not what was stored once, and only an operator can mend that. The message says what and how."""


class Unavailable(BeamtimeError):
    """What is asked for cannot be reached now; nothing is lost. The message says what, and when to try again."""
