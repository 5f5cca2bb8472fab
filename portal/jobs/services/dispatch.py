"""Making the cluster have what the rows say, and no more."""

import time
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain

from portal.core import metrics
from portal.jobs.services import errands
from portal.jobs.services.errands import Errand, NotBegun, Outcome
from portal.jobs.services.settle import settle, settle_all

THREADS = 8
BATCH = 32
# No new errand after so long: with the longest calls still under way, a sweep stays inside its task's time limit.
BUDGET_SECONDS = 25.0


def dispatch(attempt_id: int) -> None:
    """Do what is due for one attempt, if anything is and nobody else has claimed it.

    Where others are late, hints come faster than they are followed one by one; then everything is done in batches.
    """
    deadline = time.monotonic() + BUDGET_SECONDS
    batch = errands.prepare(errands.claim(limit=BATCH, hinted=attempt_id))
    if len(batch) > 1:
        _carry_out(chain([batch], _batches(deadline)))
        return
    for errand in batch:
        settle(errand, errands.run(errand))


def sweep(*, budget_seconds: float = BUDGET_SECONDS) -> int:
    """Do everything that is due, with several calls to the cluster at a time; the number of errands done."""
    count = _carry_out(_batches(time.monotonic() + budget_seconds))
    metrics.JOBS_SWEPT.inc(count)
    return count


def _carry_out(batches: Iterable[list[Errand]]) -> int:
    """Threads only make calls; the database is used by the calling thread alone.

    While one batch is on its way, the one before is written down, so neither the cluster nor the database waits for
    the other.
    """
    count = 0
    pool = ThreadPoolExecutor(THREADS, thread_name_prefix="dispatch")
    try:
        under_way: list[tuple[Errand, Future[Outcome]]] = []
        for batch in batches:
            begun = [(errand, pool.submit(errands.run, errand)) for errand in batch]
            count += _write_down(under_way)
            under_way = begun
        count += _write_down(under_way)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
    return count


def _batches(deadline: float) -> Iterator[list[Errand]]:
    while time.monotonic() < deadline:
        batch = errands.prepare(errands.claim(limit=BATCH))
        if not batch:
            return
        yield batch


def _write_down(under_way: list[tuple[Errand, "Future[Outcome]"]]) -> int:
    done = [(errand, future.result()) for errand, future in under_way]
    settle_all(done)
    return sum(not isinstance(outcome, NotBegun) for _, outcome in done)
