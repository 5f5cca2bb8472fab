"""What of a stream is compared with a read of its whole file."""

from portal.clusters.specs import ContainerRef
from portal.jobs.models import Job
from portal.logs import services
from portal.logs.models import Stream
from portal.logs.specs import Record
from portal.watch import history
from tests.watch.cluster import NOON_NS

SECOND = 1_000_000_000
REF = ContainerRef(cluster="default", namespace="bt-vision", pod="p", pod_uid="uid-history", container="main")


def stored(job: Job, *times_ns: int) -> Stream:
    """A stream with a line of ten bytes at each of these times, counted from noon."""
    stream = services.open_stream(job_id=job.pk, attempt_number=1, ref=REF)
    records = [Record(NOON_NS + at, b"%09d\n" % number) for number, at in enumerate(times_ns, 1)]
    services.append(stream_id=stream.pk, first_line=1, records=records)
    stream.refresh_from_db()
    return stream


def test_of_a_long_log_only_the_last_bytes_are_compared_from_a_whole_second_on(job: Job) -> None:
    stream = stored(job, *(tenth * SECOND // 10 for tenth in range(50)))

    found, from_ns = history.since(stream.pk, NOON_NS, next_line=stream.next_line, most_bytes=150)

    assert from_ns == NOON_NS + 4 * SECOND
    assert len(found.keys) >= 10
    assert found.first_line + len(found.keys) == stream.next_line


def test_a_read_never_begins_behind_the_last_stored_line_however_much_came_in_its_second(job: Job) -> None:
    # All of the last two hundred bytes within half a second: the next whole second holds nothing that is stored.
    stream = stored(job, 0, *(3 * SECOND + thousandth * SECOND // 1000 for thousandth in range(500)))

    found, from_ns = history.since(stream.pk, NOON_NS, next_line=stream.next_line, most_bytes=200)

    assert from_ns <= NOON_NS + 3 * SECOND
    # Every line from then on is known, so that all of the read is recognised.
    assert len(found.keys) >= 500
