"""What the job's page says: the sentence, the lane of time, the steps, the facts. Words and shares, no decisions."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from portal.clusters.specs import WorkSpec
from portal.core.money import whole_seconds
from portal.jobs.models import Attempt, Job, State
from portal.web.templatetags.beamtime import duration

_SILENCE = timedelta(seconds=15)


@dataclass(frozen=True, slots=True)
class Sentence:
    """The answer of the page: a strong clause, and what follows from it."""

    strong: str
    rest: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """A spell of the job's life. `since` is a moment for a point in time, `seconds` the length of a spell."""

    state: str
    line: str = ""
    seconds: int | None = None
    at: datetime | None = None
    now: bool = False
    # The state whose icon stands beside it.
    icon: str = ""


@dataclass(frozen=True, slots=True)
class Lane:
    """`segments` and `marks` for templates/components/lane.html; `label` is the whole lane as one sentence."""

    segments: Sequence[dict[str, Any]] = ()
    marks: Sequence[dict[str, Any]] = ()
    label: str = ""


@dataclass(frozen=True, slots=True)
class Spells:
    """The cluster's times of one attempt as spells that follow each other."""

    waiting: tuple[datetime, datetime]
    starting: tuple[datetime, datetime] | None = None
    running: tuple[datetime, datetime] | None = None
    over: bool = False

    @classmethod
    def of(cls, job: Job, attempt: Attempt | None, moment: datetime) -> "Spells":
        end = job.ended_at or moment
        admitted = attempt.admitted_at if attempt else None
        started = job.started_at
        return cls(
            waiting=(job.submitted_at, max(job.submitted_at, admitted or started or end)),
            starting=(admitted, max(admitted, started or end)) if admitted else None,
            running=(started, max(started, end)) if started else None,
            over=job.is_over,
        )


@dataclass(slots=True)
class JobPage:
    """Everything that the page and its live part show of a job; built from rows already loaded."""

    job: Job
    attempt: Attempt | None
    moment: datetime
    work: WorkSpec = field(init=False)
    spells: Spells = field(init=False)

    def __post_init__(self) -> None:
        self.work = WorkSpec.from_json(self.job.work)
        self.spells = Spells.of(self.job, self.attempt, self.moment)

    @property
    def sentence(self) -> Sentence:
        """What is going on, or how it ended, with what to do."""
        job, reason = self.job, self.job.reason
        match job.state:
            case State.SUBMITTED:
                if reason:
                    return Sentence(_("Not with the cluster yet."), reason)
                return Sentence(_("Safely stored."), _("The cluster is told of it at this moment."))
            case State.QUEUED:
                head = _("Waiting for %(time)s in queue %(queue)s.")
                return Sentence(head % {"time": self._lasts(self.spells.waiting), "queue": self._queue}, reason)
            case State.STARTING:
                spell = self.spells.starting or self.spells.waiting
                return Sentence(_("Starting for %(time)s.") % {"time": self._lasts(spell)}, reason or self._on_nodes())
            case State.RUNNING:
                spell = self.spells.running or self.spells.waiting
                return Sentence(_("Running for %(time)s.") % {"time": self._lasts(spell)}, reason or self._until())
            case State.CANCELLING:
                return Sentence(_("Being stopped."), self._asked_to_stop())
            case State.SUCCEEDED:
                spell = self.spells.running or self.spells.waiting
                return Sentence(_("Succeeded after %(time)s.") % {"time": self._lasts(spell)}, reason)
        return Sentence(f"{job.get_state_display()}.", reason)

    @property
    def unanswered(self) -> str:
        """Said when the cluster has been asked for longer than a moment and has not answered."""
        asked = self.job.cancel_requested_at
        if self.job.state != State.CANCELLING or asked is None or self.moment - asked < _SILENCE:
            return ""
        return _("Waiting for the cluster to say that the last process has ended.")

    @property
    def verb(self) -> str:
        """*Stop* is for what runs, *Cancel* for what waits."""
        return _("Stop") if self.job.state in (State.RUNNING, State.STARTING) else _("Cancel")

    @property
    def stop_question(self) -> dict[str, str]:
        """The dialog before it: what is lost in time and money."""
        if self.job.state in (State.RUNNING, State.STARTING):
            lost = _("It has run for %(time)s. What it has not written elsewhere is lost; its log and its cost stay.")
            return {
                "title": _("Stop “%(name)s”?") % {"name": self.job.name},
                "text": lost % {"time": self._lasts(self.spells.running or self.spells.waiting)},
                "confirm": _("Stop the job"),
                "keep": _("Keep it running"),
                "busy": _("Stopping"),
            }
        return {
            "title": _("Cancel “%(name)s”?") % {"name": self.job.name},
            "text": _("It leaves the queue and costs nothing. Run it again whenever you like."),
            "confirm": _("Cancel the job"),
            "keep": _("Keep it waiting"),
            "busy": _("Cancelling"),
        }

    @property
    def steps(self) -> list[Step]:
        """The life so far, one step a spell."""
        spells, state = self.spells, self.job.state
        found = [Step(_("Submitted"), at=self.job.submitted_at, icon="submitted")]
        waited = self._seconds(spells.waiting)
        if spells.starting or spells.running or waited or state == State.QUEUED:
            line = _("in queue %(queue)s") % {"queue": self._queue}
            found.append(Step(_("Queued"), line, waited, now=state == State.QUEUED, icon="queued"))
        if spells.starting:
            now, took = state == State.STARTING, self._seconds(spells.starting)
            found.append(Step(_("Starting"), self._on_nodes(), took, now=now, icon="starting"))
        if spells.running:
            now, took = state == State.RUNNING, self._seconds(spells.running)
            found.append(Step(_("Running"), self._on_nodes(), took, now=now, icon="running"))
        if spells.over:
            found.append(Step(str(self.job.get_state_display()), at=self.job.ended_at, now=True, icon=state))
        return found

    @property
    def lane(self) -> Lane:
        """The same life on a scale of time, up to the limit while it runs."""
        spells, start = self.spells, self.job.submitted_at
        now = self.job.ended_at or self.moment
        limit = self.limit_at
        until = max(now, limit) if limit and not spells.over else now
        whole = max(1.0, (until - start).total_seconds())

        def share(moment: datetime) -> float:
            return max(0.0, min(100.0, (moment - start).total_seconds() / whole * 100))

        segments = [
            {
                "state": state,
                "x": share(begin),
                "width": share(end) - share(begin),
                "title": self._said(state, begin, end),
            }
            for state, spell in (("queued", spells.waiting), ("starting", spells.starting), ("running", spells.running))
            if spell and spell[1] > spell[0]
            for begin, end in [spell]
        ]
        marks: list[dict[str, Any]] = []
        if not spells.over and limit and spells.running:
            width = share(limit) - share(now)
            segments.append(
                {"state": "running", "x": share(now), "width": width, "hatch": True, "title": _("expected")}
            )
            marks = [
                {"x": share(now), "label": _("now"), "now": True, "anchor": "start" if share(now) < 8 else "middle"},
                {"x": 100, "label": _("limit"), "anchor": "end"},
            ]
        label = "; ".join(str(segment["title"]) for segment in segments if not segment.get("hatch"))
        return Lane(segments, marks, label or _("nothing yet"))

    @property
    def limit_at(self) -> datetime | None:
        """When the time limit ends the job, if it has one and runs."""
        if self.work.time_limit_seconds is None or self.job.started_at is None:
            return None
        return self.job.started_at + timedelta(seconds=self.work.time_limit_seconds)

    @property
    def shape(self) -> str:
        """`4 × NVIDIA H100`, or cores and memory where no GPU is asked for."""
        work = self.work
        if work.gpus:
            text = f"{work.gpus} × {self.job.gpu_model or work.flavor or _('GPU')}"
        else:
            cores = work.cpu_millicores / 1000
            text = ngettext("%(n)s core", "%(n)s cores", int(cores) or 1) % {"n": f"{cores:g}"}
        return text if work.runs == 1 else _("%(runs)s runs × %(shape)s") % {"runs": work.runs, "shape": text}

    @property
    def memory_gib(self) -> str:
        return f"{self.work.memory_mib / 1024:g}"

    def _on_nodes(self) -> str:
        nodes = self.attempt.nodes if self.attempt else []
        if not nodes:
            return ""
        return _("on %(nodes)s") % {"nodes": ", ".join(nodes[:2]) + ("…" if len(nodes) > 2 else "")}

    def _until(self) -> str:
        left = self.limit_at - self.moment if self.limit_at else None
        return _("Its time limit is in %(time)s.") % {"time": duration(whole_seconds(left))} if left else ""

    def _asked_to_stop(self) -> str:
        who = self.job.cancel_requested_by_name
        return _("%(person)s asked for it.") % {"person": who} if who else ""

    def _lasts(self, spell: tuple[datetime, datetime]) -> str:
        return str(duration(self._seconds(spell)))

    def _said(self, state: str, begin: datetime, end: datetime) -> str:
        return f"{State(state).label} {duration(whole_seconds(end - begin))}"

    @staticmethod
    def _seconds(spell: tuple[datetime, datetime]) -> int:
        return whole_seconds(spell[1] - spell[0])

    @property
    def _queue(self) -> str:
        return self.job.queue.cluster_queue.name
