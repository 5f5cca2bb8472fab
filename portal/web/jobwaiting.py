"""Why a queued job waits: the verdict in figures, what would help, what was checked, and its place in the queue.

Kueue's own reason, stored with the attempt, decides what the verdict is; the numbers around it are the quotas less what
Beamtime's jobs hold at this moment, so they are as true as the whole cluster is Beamtime's.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from uuid import UUID

from django.conf import settings
from django.utils.html import format_html
from django.utils.translation import gettext as _

from portal.funds.models import Price
from portal.jobs.models import Attempt, Job, State
from portal.jobs.policy import Reason
from portal.jobs.selectors import Want, admitted, held_by, waiting
from portal.quotas.policy import Row, asks_of, nearest
from portal.quotas.selectors import rows_now
from portal.teams.models import User
from portal.web import verdict
from portal.web.jobanswer import Answer, ticking
from portal.web.jobpage import JobPage
from portal.web.looks import VERDICTS
from portal.web.templatetags.beamtime import clock

_ZERO = Decimal(0)
_MORE = re.compile(r"insufficient unused quota for (\S+) in flavor (\S+), (\d+) more needed")
# Waiting jobs that are counted.
MOST_WAITING = 1_000


@dataclass(frozen=True, slots=True)
class Figure:
    label: str
    value: str
    small: str = ""
    short: bool = False


@dataclass(slots=True)
class Waiting:
    """Built from what is loaded: the queue's `rows`, who holds of it, who waits in it (oldest first, this job too);
    `line` are those of them who wait for the same as this job.

    `visible` are the ids of jobs whose names the reader may see.
    """

    page: JobPage
    rows: Sequence[Row]
    holding: Sequence[Attempt]
    everybody: Sequence[Attempt]
    line: Sequence[Attempt]
    visible: frozenset[UUID]
    prices: Sequence[Price]
    may_submit: bool
    currency: str
    shortage: list[tuple[Row, Decimal]] | None = field(init=False)

    def __post_init__(self) -> None:
        self.shortage = nearest(self.page.work, self.rows)

    # --- the verdict -------------------------------------------------------------------------------------------------

    @property
    def code(self) -> str:
        return self.page.job.reason_code

    @property
    def answer(self) -> Answer:
        """Kind and shortage in the head, the sentence below."""
        kind, head, text = self._said()
        tone, icon = VERDICTS[kind]
        aside = format_html(_("checked {time}"), time=clock(self.page.moment, "seconds"))
        return Answer(head, text, tone=tone, icon=icon, aside=aside)

    def _said(self) -> tuple[str, str, str]:
        reason = self.page.job.reason
        match self.code:
            case Reason.NEVER_FITS:
                return "never", _("Can never fit"), _after(reason, "Can never fit: ")
            case Reason.QUEUE_CLOSED:
                return "held", _("Held: the queue takes no work now"), reason
            case Reason.MISCONFIGURED:
                return "misconfigured", _("Set up wrongly"), reason
            case Reason.HELD:
                return "held", _("Held by a person"), _after(reason, "Held: ")
            case Reason.PREEMPTED | Reason.EVICTED:
                return "ahead", _("Back in the queue"), reason
        found = verdict.of_work(self.page.work, self.queue, self.rows, self.ahead)
        if found.kind == "no-room" or (found.kind == "ahead" and self.code != Reason.QUOTA):
            return found.kind, found.head, found.text
        if self.code == Reason.QUOTA:
            return "no-room", _("No room now"), _after(reason, "No room now: ")
        if found.kind == "now":
            text = _("What it asks is free in ClusterQueue %(queue)s. Kueue lets it in when it looks at it next.")
            return "ahead", _("Waits for Kueue to look at it"), text % {"queue": self.queue}
        return "ahead", _("Waits in the queue"), reason

    @property
    def queue(self) -> str:
        return self.page.job.queue.cluster_queue.name

    @property
    def waits_for(self) -> str:
        """What the line of waiting jobs is for: the GPUs it asks by name; "" where any would do."""
        row = next((row for row in self.rows if row.is_gpu and row.flavor.name == self.page.work.flavor), None)
        return row.flavor.short_label if row is not None else ""

    @property
    def main(self) -> tuple[Row, Decimal] | None:
        """What the figures count, and how much of it is asked: what is short, else the GPUs, else the cores."""
        if self.shortage:
            return self.shortage[0]
        asks, wanted = asks_of(self.page.work), self.page.work.flavor
        rows = [row for row in self.rows if not wanted or row.flavor.name == wanted]
        rows = [row for row in rows if row.is_gpu == bool(asks[""]) and (row.is_gpu or row.resource == "cpu")]
        best = max(rows, key=lambda row: row.free, default=None)
        return (best, asks["" if best.is_gpu else "cpu"]) if best is not None else None

    @property
    def short_by(self) -> Decimal:
        """By Beamtime's books; where these see room and Kueue does not, by Kueue's word, which knows of others too."""
        if self.main is None:
            return _ZERO
        row, asked = self.main
        said = _MORE.search(self.page.attempt.cluster_message) if self.page.attempt else None
        told = Decimal(said[3]) if said and self.code == Reason.QUOTA and said[1] == row.resource else _ZERO
        return max(asked - row.free, _ZERO) or told

    @property
    def figures(self) -> list[Figure]:
        since = self.page.spells.last(State.QUEUED)
        found = []
        if self.main is not None and self.code != Reason.QUEUE_CLOSED:
            row, asked = self.main
            what = verdict.what(row)
            found.append(Figure(_("Asks"), verdict.plain_number(asked), what))
            if self.code == Reason.NEVER_FITS:
                most = _("The most this queue can give")
                found.append(Figure(most, verdict.plain_number(row.most), what, short=True))
            else:
                free = max(asked - self.short_by, _ZERO) if self.short_by else row.free
                found.append(Figure(_("Free for it"), verdict.plain_number(free)))
                if self.short_by:
                    found.append(Figure(_("Short by"), verdict.plain_number(self.short_by), short=True))
                else:
                    found.append(Figure(_("Jobs ahead"), str(self.ahead)))
        if since is not None:
            found.append(Figure(_("So since"), clock(since.begin), ticking(since)))
        return found

    def name_of(self, attempt: Attempt) -> str:
        """The job's name; of one that the reader may not see, whose it is."""
        if attempt.job_id in self.visible:
            return attempt.job.name
        return _("a job of %(team)s") % {"team": attempt.job.team_name}

    @property
    def ahead(self) -> int:
        """Jobs that came before it and wait for the same."""
        return next((n for n, a in enumerate(self.line) if a.job_id == self.page.job.pk), len(self.line))


def _after(reason: str, head: str) -> str:
    """A reason without the words that stand in the head already."""
    rest = reason.removeprefix(head)
    return rest[:1].upper() + rest[1:]


def waiting_of(page: JobPage, user: User, prices: Sequence[Price], *, may_submit: bool) -> Waiting:
    """Load what is around a queued job. Four queries."""
    queue = page.job.queue.cluster_queue_id
    held = admitted()
    everybody = waiting(MOST_WAITING, queue_id=queue)
    wanted = page.work.flavor
    line = [a for a in everybody if not wanted or Want.of(a).flavor in ("", wanted)]
    ids = {a.job_id for a in (*held, *line)}
    return Waiting(
        page=page,
        rows=[row for row in rows_now(held_by(held)) if row.queue.pk == queue],
        holding=[a for a in held if a.job.queue.cluster_queue_id == queue],
        everybody=everybody,
        line=line,
        visible=frozenset(Job.objects.visible_to(user).filter(pk__in=ids).values_list("pk", flat=True)),
        prices=prices,
        may_submit=may_submit,
        currency=settings.BEAMTIME_CURRENCY,
    )
