"""What the job's page says: the answer on top, the question before a stop, the facts. Words only, no decisions."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from portal.clusters.models import ResourceFlavor
from portal.clusters.specs import WorkSpec
from portal.costs.specs import JobCost
from portal.jobs.models import Attempt, Event, Job, State
from portal.jobs.policy import Reason
from portal.web.jobanswer import Answer, first_sentence, ticking
from portal.web.jobspells import Lane, Spells, Step
from portal.web.jobvalues import filled_in
from portal.web.looks import STATES, VERDICTS
from portal.web.templatetags.beamtime import clock, duration, money

_SILENCE = timedelta(seconds=10)
# More nodes than these are counted, not named.
_NODES_NAMED = 2
_TONES = {State.FAILED: "bad", State.REJECTED: "bad", State.LOST: "lost"}


@dataclass(slots=True)
class JobPage:
    """Everything that the page and its living part say of a job; built from rows already loaded."""

    job: Job
    attempt: Attempt | None
    moment: datetime
    events: Sequence[Event] = ()
    flavor: ResourceFlavor | None = None
    cost: JobCost | None = None
    work: WorkSpec = field(init=False)
    spells: Spells = field(init=False)

    def __post_init__(self) -> None:
        self.work = WorkSpec.from_json(self.job.work)
        self.spells = Spells(self.job, self.attempt, self.events, self.moment, self._on_nodes())

    # --- the answer --------------------------------------------------------------------------------------------------

    @property
    def answer(self) -> Answer:
        """What is going on, or how it ended, with what to do. A waiting job's is worked out in jobwaiting.py."""
        job, reason = self.job, self.job.reason
        head: str
        match State(job.state):
            case State.SUBMITTED:
                return self._submitted()
            case State.QUEUED:
                head = format_html(_("Waiting for {time}."), time=self._ticks(State.QUEUED))
                return Answer(head, reason)
            case State.STARTING:
                return self._trouble() or self._starting()
            case State.RUNNING:
                return self._trouble() or Answer(self._runs_for(), reason or self._until())
            case State.CANCELLING:
                head = _("Stopping.") if job.started_at else _("Being cancelled.")
                return Answer(head, f"{reason} {self._unanswered()}".strip())
            case State.SUCCEEDED | State.CANCELLED:
                return self._ended_well()
        return self._ended_badly()

    def _submitted(self) -> Answer:
        if self.job.reason:
            return self._box("no-word", _("Not with the cluster yet"), self.job.reason)
        return Answer(_("Safely stored."), _("The cluster is told of it at this moment."))

    def _starting(self) -> Answer:
        head = format_html(_("Starting for {time}."), time=self._ticks(State.STARTING))
        if self.attempt is not None and self.attempt.nodes and self.attempt.admitted_at:
            text = _("Kueue admitted it at {time}; its container is being set up {nodes}.")
            return Answer(head, format_html(text, time=clock(self.attempt.admitted_at), nodes=self._on_nodes()))
        return Answer(head, self.job.reason)

    def _trouble(self) -> Answer | None:
        """What keeps an admitted job from running, as a verdict."""
        match self.job.reason_code:
            case Reason.IMAGE:
                image = format_html('<span class="bt-mono">{}</span>', self.work.image)
                return replace(self._box("image", _("Image cannot be pulled"), self.job.reason), strong=image)
            case Reason.CONTAINER:
                return self._box("misconfigured", _("Container cannot be set up"), self.job.reason)
            case Reason.UNSCHEDULABLE:
                return self._box("pieces", _("Room in the quota, but on no node yet"), self.job.reason)
            case Reason.NODE_LOST | Reason.NO_WORD | Reason.CHECKING:
                return self._box("no-word", _("No word from the cluster"), self.job.reason)
        return None

    def _box(self, kind: str, head: str, reason: str = "") -> Answer:
        tone, icon = VERDICTS[kind]
        strong, rest = first_sentence(reason)
        return Answer(head, rest, strong, tone, icon, self._for_how_long())

    def _for_how_long(self) -> str:
        last = self.spells.all[-1]
        return format_html(_("for {time}"), time=ticking(last)) if last.now else ""

    def _ended_well(self) -> Answer:
        state = State(self.job.state)
        tone = "good" if state == State.SUCCEEDED else "neutral"
        ran, icon = self.spells.last(State.RUNNING), STATES[state].icon
        aside = format_html(_("at {time}"), time=self._ended())
        if state == State.SUCCEEDED:
            head = _("Succeeded after %(time)s") % {"time": duration(ran.seconds if ran else 0)}
            queued = self.spells.total(State.QUEUED)
            waited = _("It waited %(time)s.") % {"time": duration(queued)} if queued else _("It started at once.")
            return Answer(head, f"{waited} {self._cost_words()}".strip(), tone=tone, icon=icon, aside=aside)
        head = (self.job.reason or _("Cancelled")).rstrip(".")
        if ran is None:
            return Answer(head, _("It never ran, so it cost nothing."), tone=tone, icon=icon, aside=aside)
        text = _("It had run for %(time)s.") % {"time": duration(ran.seconds)}
        return Answer(head, f"{text} {self._cost_words()}".strip(), tone=tone, icon=icon, aside=aside)

    def _ended_badly(self) -> Answer:
        job, state = self.job, State(self.job.state)
        strong, rest = first_sentence(job.reason)
        head = f"{state.label}: {cause}" if (cause := self._cause()) else str(state.label)
        ran = self.spells.last(State.RUNNING)
        aside = format_html(_("after {time}, at {end}"), time=duration(ran.seconds), end=self._ended()) if ran else ""
        return Answer(head, rest, strong, _TONES.get(state, "neutral"), STATES[state].icon, aside)

    def _ended(self) -> str:
        return clock(self.spells.end, "seconds")

    def _cause(self) -> str:
        """The reason in two or three words; the sentence follows below."""
        number = self.attempt.exit_code if self.attempt is not None else None
        words: dict[str, str] = {
            Reason.OUT_OF_MEMORY: _("out of memory"),
            Reason.EXIT_CODE: _("exit code %(code)d") % {"code": number} if number is not None else "",
            Reason.SIGNAL: _("killed"),
            Reason.TIME_LIMIT: _("time limit reached"),
            Reason.CANNOT_START: _("could not be started"),
            Reason.NODE_REFUSED: _("refused by its node"),
            Reason.NODE_LOST: _("its node left"),
            Reason.EVICTED: _("evicted by its node"),
            Reason.DEACTIVATED: _("given up by Kueue"),
            Reason.STOPPED: _("stopped from outside"),
            Reason.VANISHED: _("how is not known"),
            Reason.DELETED_OUTSIDE: _("deleted behind Beamtime's back"),
            Reason.NAME_TAKEN: _("its name is taken"),
        }
        return words.get(self.job.reason_code, "")

    def _cost_words(self) -> str:
        if self.cost is None or self.cost.amount is None:
            return ""
        if self.cost.free:
            return _("It was free.")
        if self.cost.under_a_cent:
            return _("It cost less than a cent.")
        return _("It cost %(sum)s.") % {"sum": money(self.cost.amount)}

    def _runs_for(self) -> str:
        time, nodes = self._ticks(State.RUNNING), self._on_nodes()
        if not nodes:
            return format_html(_("Running for {time}."), time=time)
        return format_html(_("Running for {time} {nodes}."), time=time, nodes=nodes)

    def _until(self) -> str:
        if self.limit_at is None or self.work.time_limit_seconds is None:
            return _("It has no time limit.")
        text = _("Its limit of {limit} ends it at {time} at the latest.")
        return format_html(text, limit=duration(self.work.time_limit_seconds), time=clock(self.limit_at))

    def _unanswered(self) -> str:
        """Said when the cluster has been asked for longer than a moment and has not answered."""
        asked = self.job.cancel_requested_at
        if asked is None or self.moment - asked < _SILENCE:
            return ""
        return _("Waiting for the cluster to say that the last process has ended.")

    def _ticks(self, state: State) -> str:
        spell = self.spells.last(state)
        return ticking(spell) if spell is not None else duration(0)

    # --- the question before a stop ----------------------------------------------------------------------------------

    @property
    def verb(self) -> str:
        """*Stop* is for what runs, *Cancel* for what waits."""
        return _("Stop") if self.holds else _("Cancel")

    @property
    def holds(self) -> bool:
        """Whether it may hold something of the cluster now."""
        return self.job.state in (State.RUNNING, State.STARTING)

    @property
    def stop_question(self) -> dict[str, str]:
        """The dialog before it: what is lost in time and money."""
        name = self.job.name
        if not self.holds:
            return {
                "title": _("Cancel “%(name)s”?") % {"name": name},
                "text": _("It leaves the queue and costs nothing. Run it again whenever you like."),
                "confirm": _("Cancel the job"),
                "keep": _("Keep it waiting"),
                "busy": _("Cancelling"),
            }
        text = _("It has not begun to run. Its place in the queue is given up.")
        if self.spells.last(State.RUNNING) is not None:
            lost = _("It has run for {time}. What it has not written elsewhere is lost; its log and its cost stay.")
            text = format_html(lost, time=self._ticks(State.RUNNING))
            if self.cost is not None and self.cost.amount:
                text = format_html("{} {}", text, _("So far it cost %(sum)s.") % {"sum": money(self.cost.amount)})
        return {
            "title": _("Stop “%(name)s”?") % {"name": name},
            "text": text,
            "confirm": _("Stop the job"),
            "keep": _("Keep it running"),
            "busy": _("Stopping"),
        }

    # --- time and facts ----------------------------------------------------------------------------------------------

    @property
    def steps(self) -> list[Step]:
        return self.spells.steps

    @property
    def lane(self) -> Lane:
        return self.spells.lane(self.limit_at)

    @property
    def limit_at(self) -> datetime | None:
        """When the time limit ends the job, if it has one and runs."""
        if self.work.time_limit_seconds is None or self.job.started_at is None:
            return None
        return self.job.started_at + timedelta(seconds=self.work.time_limit_seconds)

    @property
    def limit_left(self) -> timedelta | None:
        """What is left of it while it runs."""
        if self.limit_at is None or self.job.state != State.RUNNING or self.limit_at <= self.moment:
            return None
        return self.limit_at - self.moment

    @property
    def shape(self) -> str:
        """`4 × H100 80 GB (pretended)`, or cores where no GPU is asked for; of each run."""
        work = self.work
        if work.gpus:
            return f"{work.gpus} × {self.gpu}"
        return self.cores

    @property
    def gpu(self) -> str:
        """The model as people say it; a pretended one says so."""
        if self.flavor is not None and self.flavor.gpu_model:
            return self.flavor.short_label
        return self.job.gpu_model.removeprefix("NVIDIA ") or _("GPU of any model")

    @property
    def cores(self) -> str:
        cores = self.work.cpu_millicores / 1000
        return ngettext("%(n)s core", "%(n)s cores", 1 if cores == 1 else 2) % {"n": f"{cores:g}"}

    @property
    def memory(self) -> str:
        mib = self.work.memory_mib
        return f"{mib / 1024:g} GiB" if mib >= 1024 else f"{mib} MiB"

    @property
    def filled_in(self) -> list[tuple[str, str]]:
        """What was chosen in the form, without what stands among the facts already."""
        return filled_in(self.job.template_version.definition, self.job.values)

    def _on_nodes(self) -> str:
        nodes = list(self.attempt.nodes) if self.attempt else []
        if not nodes:
            return ""
        if len(nodes) > _NODES_NAMED:
            return _("on %(n)d nodes") % {"n": len(nodes)}
        return _("on %(nodes)s") % {"nodes": ", ".join(map(str, nodes))}
