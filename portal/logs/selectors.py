"""Reads of the log. A line is named by its number and by nothing else; times are for people."""

from collections.abc import AsyncIterator, Iterator
from datetime import datetime
from uuid import UUID

from asgiref.sync import sync_to_async
from django.conf import settings
from django.db.models import QuerySet

from portal.core.errors import Corrupt, Gone, Missing, Unavailable
from portal.jobs.models import Job
from portal.logs import damage, policy
from portal.logs.models import Gap, Retention, Stream
from portal.logs.policy import decode, gap_words
from portal.logs.specs import Line, Page, Record
from portal.logs.store import Damaged, store
from portal.teams.models import User

MOST_LINES = 5000
# A page of long lines ends here and says where the next begins.
_MOST_BYTES = 4 * 1024 * 1024
_RULE = "job__team__log_retention"


def streams_of(job: Job) -> QuerySet[Stream]:
    """All streams of a job with their gaps and their team's rule: by attempt, pod, container start. Two queries."""
    return Stream.objects.filter(job=job).select_related(_RULE).prefetch_related("gaps")


def stream_for(user: User, stream_id: UUID | str) -> Stream:
    """The stream with its job, if this person may see it. Raises `Missing` otherwise, and for a malformed id."""
    try:
        key = stream_id if isinstance(stream_id, UUID) else UUID(stream_id)
    except ValueError:
        raise Missing("no such log") from None
    stream = Stream.objects.select_related(_RULE).filter(pk=key, job__in=Job.objects.visible_to(user)).first()
    if stream is None:
        raise Missing("no such log")
    return stream


def lines(stream: Stream, first: int, limit: int) -> Page:
    """Lines from number `first` on, at most `limit` and at most `MOST_LINES`. Two queries, three for sealed lines.

    The page may hold fewer (long lines); `next` is where to go on. Beyond the end it is empty, and if the text has
    expired: then it says so. Raises `Unavailable` if sealed lines lie in a place that does not answer, `Corrupt` if
    they are not what was sealed.
    """
    row = Stream.objects.values_list("next_line", "completed_at", "open_text", "sealed_line", "expired_at").get(
        pk=stream.pk
    )
    end, completed_at, open_text, sealed_line, expired_at = row
    if expired_at is not None:
        return _expired_page(stream, first)
    first = min(max(first, 1), end)
    wanted = min(max(limit, 0), MOST_LINES, end - first)
    try:
        with damage.told(stream.pk):
            records = _read(stream.pk, first, wanted, sealed_line)
    except (Gone, Unavailable, Corrupt):
        if Stream.objects.filter(pk=stream.pk, expired_at__isnull=False).exists():
            return _expired_page(stream, first)
        raise
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


def records(stream_id: UUID, first: int, limit: int) -> list[Record]:
    """Lines as they are stored, at most so many and about 4 MiB; none where there is none. Raises as `lines` does."""
    end, sealed_line = Stream.objects.values_list("next_line", "sealed_line").get(pk=stream_id)
    return _read(stream_id, first, min(limit, end - first), sealed_line) if 0 < first < end else []


def _read(stream_id: UUID, first: int, wanted: int, sealed_line: int) -> list[Record]:
    if not wanted:
        return []
    records = store().read(stream_id, first=first, limit=wanted, max_bytes=_MOST_BYTES, sealed_line=sealed_line)
    if not records:
        # An empty answer of the store is never taken for an empty log.
        raise Damaged(f"line {first} of stream {stream_id} is not in the store")
    return records


def _expired_page(stream: Stream, first: int) -> Page:
    stream.refresh_from_db()
    end = stream.next_line
    words = expired_words(stream)
    return Page(first=min(max(first, 1), end), next=end, lines=[], complete=True, at_end=True, expired=words)


def tail(stream: Stream, n: int) -> Page:
    """The last `n` lines, at most `MOST_LINES`. Three queries."""
    end = Stream.objects.values_list("next_line", flat=True).get(pk=stream.pk)
    return lines(stream, end - min(n, MOST_LINES), n)


def content(stream: Stream) -> Iterator[bytes]:
    """The whole text, byte for byte as the container wrote it, in portions of at most about 256 KiB.

    Ends early by raising only: `Gone` if the text has expired, before or meanwhile; `Unavailable`; `Corrupt`.
    """
    size, expired_at = Stream.objects.values_list("bytes", "expired_at").get(pk=stream.pk)
    given = 0
    with damage.told(stream.pk):
        if expired_at is None:
            for portion in store().content(stream.pk):
                given += len(portion)
                yield portion
        if given < size:
            stream.refresh_from_db()
            if stream.expired_at is None:
                raise Damaged(f"only {given} of the {size} bytes of stream {stream.pk} are in the store")
            raise Gone(expired_words(stream))


def download(stream: Stream) -> AsyncIterator[bytes]:
    """The same, for a server that must not read a whole log into memory before it sends the first byte.

    That byte is read here and now, so what keeps a log from being read is raised while an answer can still say so.
    """
    portions = content(stream)
    return _from(next(portions, b""), portions)


def content_async(stream: Stream) -> AsyncIterator[bytes]:
    """The same without a look ahead, for who is on an event loop."""
    return _from(b"", content(stream))


async def _from(first: bytes, portions: Iterator[bytes]) -> AsyncIterator[bytes]:
    if first:
        yield first
    while (portion := await sync_to_async(_next)(portions)) is not None:
        yield portion


def _next(portions: Iterator[bytes]) -> bytes | None:
    return next(portions, None)


def newest_first(stream_id: UUID) -> Iterator[Record]:
    """The stored lines, the last one first. One by one, because a second may hold a million lines."""
    return store().backwards(stream_id)


def unfinished_in(cluster: str) -> QuerySet[Stream]:
    """The streams of one cluster that have no end yet."""
    return Stream.objects.filter(completed_at__isnull=True, job__queue__cluster_queue__cluster__name=cluster)


def gaps_of(stream: Stream) -> list[Gap]:
    """What is missing in a stream, in the order of its lines. One query."""
    return list(stream.gaps.all())


def trouble_of(stream: Stream) -> str:
    """What is missing in a stream, in sentences; "" while all is well. One query, none if the gaps are prefetched."""
    expired = [expired_words(stream)] if stream.expired_at else []
    return " ".join([*expired, *(gap_words(gap) for gap in stream.gaps.all())])


def expires_at(stream: Stream) -> datetime | None:
    """When the text of this log expires by the present rule; None: not while the job goes on, or never.

    No query for a stream of `streams_of` or `stream_for`.
    """
    return policy.expires_at(ended_at=stream.job.ended_at, days=_rule_of(stream)[0])


def expiry_words(stream: Stream) -> str:
    """One sentence about the end of this log's text, past or to come; "" if it is kept for ever or its job goes on."""
    if stream.expired_at is not None:
        return expired_words(stream)
    moment = expires_at(stream)
    return "" if moment is None else policy.expiring_words(moment, rule=_rule_of(stream)[1])


def expired_words(stream: Stream) -> str:
    """The sentence that stands in the place of an expired text."""
    return policy.expired_words(stream, rule=_rule_of(stream)[1])


def _rule_of(stream: Stream) -> tuple[int, str]:
    """(days, whose rule it is)."""
    team = stream.job.team
    try:
        return team.log_retention.days, team.name
    except Retention.DoesNotExist:
        return settings.BEAMTIME_LOG_RETENTION_DAYS, "the site"


def all_complete(*, job_id: UUID | str, attempt_number: int) -> bool:
    """Whether no stream of this attempt is still being read."""
    return not Stream.objects.filter(job_id=job_id, attempt_number=attempt_number, completed_at__isnull=True).exists()
