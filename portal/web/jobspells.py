"""The life of a job as spells of time that follow each other: the lane and its steps. Pure; the rows come loaded."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from django.utils.html import format_html, strip_tags
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from portal.core.money import whole_seconds
from portal.jobs.models import Attempt, Event, Job, State
from portal.web.templatetags.beamtime import clock, duration

# Kinds of events that end a stay: Kueue took the quota back, and the job is in the queue again.
_BACK = ("preempted", "evicted")
MOST_STEPS = 7


@dataclass(frozen=True, slots=True)
class Spell:
    """One state for a while. `line` is half a sentence about it (text or HTML); `now`: it goes on."""

    state: State
    begin: datetime
    end: datetime
    line: str = ""
    now: bool = False

    @property
    def seconds(self) -> int:
        return whole_seconds(self.end - self.begin)


@dataclass(frozen=True, slots=True)
class Step:
    """A step below the lane: a moment (`at`), or a length (`seconds`), which grows from `since` on while it goes on."""

    word: str
    icon: str
    line: str = ""
    seconds: int | None = None
    at: datetime | None = None
    since: datetime | None = None
    now: bool = False


@dataclass(frozen=True, slots=True)
class Lane:
    """`segments` and `marks` for templates/components/lane.html; `label` is the whole lane as one sentence."""

    segments: Sequence[dict[str, Any]] = ()
    marks: Sequence[dict[str, Any]] = ()
    label: str = ""


@dataclass(slots=True)
class Spells:
    """Every spell of a job up to `moment`, by the cluster's times. `nodes` is where it runs, in words.

    A clock that is behind another never makes a spell of negative length: each boundary is at or after the one before.
    """

    job: Job
    attempt: Attempt | None
    events: Sequence[Event]
    moment: datetime
    nodes: str = ""
    all: list[Spell] = field(init=False)

    def __post_init__(self) -> None:
        self.all = self._spells()

    @property
    def end(self) -> datetime:
        return max(self.job.ended_at or self.moment, self.job.submitted_at)

    def last(self, state: State) -> Spell | None:
        """The newest spell of a state."""
        return next((spell for spell in reversed(self.all) if spell.state == state), None)

    def total(self, state: State) -> int:
        """Seconds of all spells of a state."""
        return sum(spell.seconds for spell in self.all if spell.state == state)

    # --- spells ------------------------------------------------------------------------------------------------------

    def _spells(self) -> list[Spell]:
        job, state = self.job, State(self.job.state)
        if state == State.SUBMITTED:
            return [Spell(state, job.submitted_at, self.end, now=True)]
        found, cursor = [], job.submitted_at
        for back in self._backs():
            admitted, started = (self._first(kind, cursor, back.at) for kind in ("starting", "running"))
            *stay, last = self._stay(cursor, admitted, started, back.at)
            text = _("preempted at {time}") if back.kind == "preempted" else _("sent back at {time}")
            found += [*stay, replace(last, line=format_html(text, time=clock(back.at)))]
            cursor = max(cursor, back.at)
        admitted = self.attempt.admitted_at if self.attempt else None
        *stay, last = self._stay(cursor, admitted, job.started_at, self.end)
        if state in (State.QUEUED, State.STARTING, State.RUNNING):
            since = format_html(_("since {time}"), time=clock(last.begin, "seconds"))
            last = replace(last, now=True, line=last.line if state == State.STARTING else since)
        return [*found, *stay, last]

    def _backs(self) -> list[Event]:
        if self.attempt is None or self.attempt.requeued_at is None:
            return []
        return [event for event in self.events if event.kind in _BACK]

    def _first(self, kind: str, begin: datetime, end: datetime) -> datetime | None:
        return next((e.at for e in self.events if e.kind == kind and begin <= e.at <= end), None)

    def _stay(self, begin: datetime, admitted: datetime | None, started: datetime | None, end: datetime) -> list[Spell]:
        """From entering the queue to leaving the cluster, or the queue again."""
        end = max(begin, end)
        let_in = min(max(begin, admitted or started or end), end)
        queue = _("in queue %(queue)s") % {"queue": self.job.queue.cluster_queue.name}
        found = [Spell(State.QUEUED, begin, let_in, queue)]
        run = min(max(let_in, started or end), end)
        if admitted is not None:
            found.append(Spell(State.STARTING, let_in, run, self.nodes))
        if started is not None:
            found.append(Spell(State.RUNNING, run, end, self.nodes))
        return found

    # --- steps -------------------------------------------------------------------------------------------------------

    @property
    def steps(self) -> list[Step]:
        """The life so far, one step a spell; where they are too many, the earlier stays are one."""
        job = self.job
        by = _("by %(name)s") % {"name": job.submitted_by_name}
        head = [Step(str(State.SUBMITTED.label), State.SUBMITTED, by, at=job.submitted_at)]
        tail = self._end_steps()
        spells = [spell for spell in self.all if spell.state != State.SUBMITTED]
        room = MOST_STEPS - len(head) - len(tail)
        if len(spells) > room:
            earlier, spells = spells[: 1 - room], spells[1 - room :]
            stays = sum(spell.state == State.QUEUED for spell in earlier)
            text = ngettext("%(n)d earlier stay", "%(n)d earlier stays", stays) % {"n": stays}
            head.append(Step(text, State.QUEUED, earlier[-1].line, seconds=sum(spell.seconds for spell in earlier)))
        return [*head, *map(_step, spells), *tail]

    def _end_steps(self) -> list[Step]:
        job, state = self.job, State(self.job.state)
        asked_by = _("by %(name)s") % {"name": job.cancel_requested_by_name} if job.cancel_requested_by_name else ""
        if state == State.CANCELLING:
            asked = job.cancel_requested_at or self.moment
            seconds = whole_seconds(self.moment - asked)
            return [Step(str(state.label), state, asked_by, seconds, since=asked, now=True)]
        if not job.is_over:
            return []
        code = self.attempt.exit_code if self.attempt else None
        line = _("exit code %(code)d") % {"code": code} if code is not None else ""
        return [Step(str(state.label), state, asked_by if state == State.CANCELLED else line, at=self.end, now=True)]

    # --- lane --------------------------------------------------------------------------------------------------------

    def lane(self, limit_at: datetime | None) -> Lane:
        """The same life on a scale of time, up to the limit while it runs."""
        start, now = self.job.submitted_at, self.end
        ends = limit_at if limit_at and limit_at > now and not self.job.is_over else now
        whole = max(1.0, (ends - start).total_seconds())

        def share(moment: datetime) -> float:
            return max(0.0, min(100.0, (moment - start).total_seconds() / whole * 100))

        segments = [
            {"state": s.state, "x": share(s.begin), "width": share(s.end) - share(s.begin), "title": _said(s)}
            for s in self.all
            if s.end > s.begin
        ]
        label = "; ".join(str(segment["title"]) for segment in segments) or _("nothing yet")
        return Lane(segments, _marks(share(now), now, ends) if ends > now else (), label)


def _step(spell: Spell) -> Step:
    since = spell.begin if spell.now else None
    return Step(str(spell.state.label), spell.state, spell.line, spell.seconds, since=since, now=spell.now)


def _marks(x: float, now: datetime, limit_at: datetime) -> list[dict[str, Any]]:
    """The present and the limit; where their words would touch, only the present has some."""
    anchor = "start" if x < 8 else "end" if x > 92 else "middle"
    words = _("now %(time)s") % {"time": strip_tags(clock(now))}
    marks: list[dict[str, Any]] = [{"x": x, "label": words, "now": True, "anchor": anchor}]
    if x < 80:
        words = _("limit %(time)s") % {"time": strip_tags(clock(limit_at))}
        marks.append({"x": 100, "label": words, "anchor": "end", "wide": x > 50})
    return marks


def _said(spell: Spell) -> str:
    return f"{spell.state.label} {duration(spell.seconds)}"
