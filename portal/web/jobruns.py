"""The pods of a job, where there are several or one was tried again: a row for each run, the failed ones first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from portal.core.money import whole_seconds
from portal.jobs.models import Attempt, Job, Pod, State
from portal.logs.models import Stream

# A page shows so many rows unless asked for all.
MOST_RUNS = 30
_STATES = {"Pending": State.STARTING, "Running": State.RUNNING, "Succeeded": State.SUCCEEDED, "Failed": State.FAILED}
_ORDER = (State.FAILED, State.LOST, State.RUNNING, State.STARTING, State.SUCCEEDED)


@dataclass(frozen=True, slots=True)
class Run:
    """A pod as a row. `earlier`: another pod took its place since."""

    pod: Pod
    attempt: int
    state: State
    seconds: int | None
    stream: Stream | None
    earlier: bool

    @property
    def lines(self) -> int:
        """How long its log is."""
        return self.stream.next_line - 1 if self.stream is not None else 0


@dataclass(slots=True)
class Runs:
    """The runs of a job at `moment`, with their logs."""

    job: Job
    attempts: Sequence[Attempt]
    streams: Sequence[Stream]
    moment: datetime
    total: int

    @property
    def shown(self) -> bool:
        """Whether there is more than one thing to tell apart."""
        return self.total > 1 or sum(len(attempt.pods.all()) for attempt in self.attempts) > 1

    @property
    def rows(self) -> list[Run]:
        """Those that went wrong first, then what goes on; each kind by its index."""
        logs = {stream.pod_uid: stream for stream in self.streams}
        # One after another by age, so that the last pod of an index is the one that counts.
        newest = {pod.index: pod.pk for attempt in self.attempts for pod in attempt.pods.all()}
        found = [
            self._run(pod, attempt.number, logs, earlier=newest[pod.index] != pod.pk)
            for attempt in self.attempts
            for pod in attempt.pods.all()
        ]
        return sorted(found, key=lambda run: (run.earlier, _ORDER.index(run.state), run.pod.index))

    def _run(self, pod: Pod, attempt: int, logs: Mapping[str, Stream], *, earlier: bool) -> Run:
        state = _STATES.get(pod.phase, State.LOST)
        if pod.gone and state in (State.RUNNING, State.STARTING):
            state = State.LOST
        end = pod.ended_at or (self.moment if state == State.RUNNING and not self.job.is_over else None)
        seconds = whole_seconds(end - pod.started_at) if pod.started_at and end else None
        return Run(pod, attempt, state, seconds, logs.get(pod.uid), earlier or pod.past)

    @property
    def failed_log(self) -> Stream | None:
        """The log of the run that failed first."""
        wrong = [run for run in self.rows if run.state == State.FAILED and run.stream is not None]
        return min(wrong, key=_ended).stream if wrong else None

    @property
    def bar(self) -> dict[str, Any] | None:
        """How far the runs are, as parts of one bar; `done` counts those that have ended."""
        if self.total <= 1 or not self.attempts:
            return None
        states = [run.state for run in self.rows if not run.earlier]
        counts = {state: states.count(state) for state in (State.SUCCEEDED, State.FAILED, State.LOST, State.RUNNING)}
        parts, x = [], 0.0
        for state, count in counts.items():
            width = count / self.total * 100
            if count:
                parts.append({"tone": state.value, "x": x, "width": width})
            x += width
        done = counts[State.SUCCEEDED] + counts[State.FAILED] + counts[State.LOST]
        return {"parts": parts, "done": done, "total": self.total}


def _ended(run: Run) -> tuple[bool, float, int]:
    """Unknown ends last."""
    at = run.pod.ended_at
    return (at is None, at.timestamp() if at else 0.0, run.pod.index)
