"""Reads of the log. A line is named by its number and by nothing else; times are for people."""

from collections.abc import AsyncIterator, Iterator
from uuid import UUID

from asgiref.sync import sync_to_async
from django.db.models import QuerySet

from portal.core.errors import Missing
from portal.jobs.models import Job
from portal.logs.models import Gap, Stream
from portal.logs.policy import decode, gap_words
from portal.logs.specs import Line, Page, Record
from portal.logs.store import store
from portal.teams.models import User

MOST_LINES = 5000
# A page of long lines ends here and says where the next begins.
_MOST_BYTES = 4 * 1024 * 1024


def streams_of(job: Job) -> QuerySet[Stream]:
    """All streams of a job with their gaps: by attempt, pod, container start. Two queries."""
    return Stream.objects.filter(job=job).prefetch_related("gaps")


def stream_for(user: User, stream_id: UUID | str) -> Stream:
    """The stream with its job, if this person may see it. Raises `Missing` otherwise, and for a malformed id."""
    try:
        key = stream_id if isinstance(stream_id, UUID) else UUID(stream_id)
    except ValueError:
        raise Missing("no such log") from None
    stream = Stream.objects.select_related("job").filter(pk=key, job__in=Job.objects.visible_to(user)).first()
    if stream is None:
        raise Missing("no such log")
    return stream


def lines(stream: Stream, first: int, limit: int) -> Page:
    """Lines from number `first` on, at most `limit` and at most `MOST_LINES`. Two queries.

    The page may hold fewer (long lines); `next` is where to go on. Beyond the end it is empty.
    """
    row = Stream.objects.values_list("next_line", "completed_at", "open_text").get(pk=stream.pk)
    end, completed_at, open_text = row
    first = min(max(first, 1), end)
    wanted = min(max(limit, 0), MOST_LINES, end - first)
    records = store().read(stream.pk, first=first, limit=wanted, max_bytes=_MOST_BYTES) if wanted else []
    found = [Line(first + index, record.time_ns, decode(record.text)) for index, record in enumerate(records)]
    reached = first + len(found)
    at_end = reached == end
    return Page(
        first=first,
        next=reached,
        lines=found,
        complete=at_end and completed_at is not None,
        at_end=at_end,
        open_text=open_text if at_end else "",
    )


def tail(stream: Stream, n: int) -> Page:
    """The last `n` lines, at most `MOST_LINES`. Three queries."""
    end = Stream.objects.values_list("next_line", flat=True).get(pk=stream.pk)
    return lines(stream, end - min(n, MOST_LINES), n)


def content(stream: Stream) -> Iterator[bytes]:
    """The whole text, byte for byte as the container wrote it, in portions of at most 256 KiB."""
    return store().content(stream.pk)


async def content_async(stream: Stream) -> AsyncIterator[bytes]:
    """The same, for a server that must not read a whole log into memory before it sends the first byte."""
    portions = content(stream)
    while (portion := await sync_to_async(_next)(portions)) is not None:
        yield portion


def _next(portions: Iterator[bytes]) -> bytes | None:
    return next(portions, None)


def stored_since(stream_id: UUID, time_ns: int, *, slack_ns: int) -> Iterator[Record]:
    """The stored lines with a time of at least `time_ns`, the last one first: those that a resumed read repeats.

    Times of two pipes may be out of order by a little, so the search goes back until `slack_ns` before that time. One
    by one, because a second may hold a million lines.
    """
    for record in store().backwards(stream_id):
        if record.time_ns < time_ns - slack_ns:
            return
        if record.time_ns >= time_ns:
            yield record


def unfinished_in(cluster: str) -> QuerySet[Stream]:
    """The streams of one cluster that have no end yet."""
    return Stream.objects.filter(completed_at__isnull=True, job__queue__cluster_queue__cluster__name=cluster)


def gaps_of(stream: Stream) -> list[Gap]:
    """What is missing in a stream, in the order of its lines. One query."""
    return list(stream.gaps.all())


def trouble_of(stream: Stream) -> str:
    """What is missing in a stream, in sentences; "" while all is well. One query, none if the gaps are prefetched."""
    return " ".join(gap_words(gap) for gap in stream.gaps.all())


def all_complete(*, job_id: UUID | str, attempt_number: int) -> bool:
    """Whether no stream of this attempt is still being read."""
    return not Stream.objects.filter(job_id=job_id, attempt_number=attempt_number, completed_at__isnull=True).exists()
