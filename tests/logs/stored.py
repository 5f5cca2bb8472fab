"""Filling logs for the tests of the store."""

import random
from collections.abc import Sequence

from portal.logs import services
from portal.logs.models import Segment, Stream
from portal.logs.specs import Record

SECOND = 1_000_000_000
START = 1_700_000_000 * SECOND


def training_lines(number: int, *, first: int = 1, step_ns: int = SECOND // 50) -> list[Record]:
    """What a training says from line `first` on, one line each 20 ms: about 110 bytes a line, no two alike."""
    return [Record(START + n * step_ns, _training_line(n)) for n in range(first, first + number)]


def _training_line(n: int) -> bytes:
    dice = random.Random(n)
    return b"[rank%d] step %d/5000000 loss=%.6f lr=%.3e grad=%.4f tokens/s=%d mem=71.3GiB eta 3 days, 4:%02d:%02d\n" % (
        n % 8,
        n,
        dice.random() * 3,
        dice.random() / 1e4,
        dice.random(),
        dice.randrange(90000, 110000),
        n % 60,
        n % 59,
    )


def store_lines(stream: Stream, records: Sequence[Record], *, portion: int = 1000) -> bytes:
    """Append records behind the last line of the stream; their text."""
    stream.refresh_from_db()
    first = stream.next_line
    for start in range(0, len(records), portion):
        part = records[start : start + portion]
        assert services.append(stream_id=stream.pk, first_line=first + start, records=part)
    stream.refresh_from_db()
    return b"".join(record.text for record in records)


def sealed_lines(stream: Stream, records: Sequence[Record]) -> bytes:
    """A complete and sealed log of these records; their text."""
    text = store_lines(stream, records)
    services.complete(stream_id=stream.pk)
    services.seal_stream(stream_id=stream.pk)
    stream.refresh_from_db()
    assert stream.sha256
    return text


def damage(stream: Stream, *, at: float = 0.0) -> None:
    """Turn one bit of the log's first segment, near its beginning or further on (1.0: at its end)."""
    segment = Segment.objects.filter(stream=stream).order_by("first_line")[0]
    body = bytearray(bytes(segment.data or b""))
    body[min(len(body) - 1, 100 + int(at * len(body)))] ^= 1
    Segment.objects.filter(pk=segment.pk).update(data=bytes(body))
