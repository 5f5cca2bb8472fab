"""What followers count of their connections: how many there are, and why they were opened again."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from portal.clusters.specs import ClusterError, LineBroken, LogGone
from portal.core import metrics
from portal.watch.desk import DATABASE_DOWN
from portal.watch.reading import Stale


def being(state: str) -> AbstractContextManager[object]:
    """One follower more that is reading, waiting, pausing or standing_by, as long as this lasts."""
    return metrics.LOG_FOLLOWERS.labels(state).track_inprogress()


class Connections:
    """Of one log, one after the other."""

    def __init__(self) -> None:
        # What ended the last one; "" before the first.
        self._ended_by = ""

    @contextmanager
    def one(self) -> Iterator[None]:
        """As long as it is open."""
        if self._ended_by:
            metrics.LOG_REOPENS.labels(self._ended_by).inc()
        self._ended_by = "fault"
        try:
            with being("reading"):
                yield
        except Exception as error:
            self._ended_by = _cause(error)
            raise

    def left(self, *, closed: bool, ended: bool) -> None:
        """It ended in peace: `closed` by the endpoint, else by us; `ended`: its container has, or its pod is to go."""
        self._ended_by = "ended" if ended else "end_of_file" if closed else "turn"


def _cause(error: Exception) -> str:
    match error:
        case LineBroken():
            return "timeout" if error.silent else "cut"
        case LogGone():
            return "not_ready"
        case ClusterError():
            return "refused"
        case Stale():
            return "overtaken"
    return "database" if isinstance(error, DATABASE_DOWN) else "fault"
