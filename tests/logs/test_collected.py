"""However a collector delivers a container's files, each line comes once and in order."""

import random
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from portal.logs.policy.collected import Book, OpenLine, Seen, Span, parse_cri

SECOND = 1_000_000_000


def files_of(texts: Sequence[bytes], *, rotate_at: int, same_time: int = 3) -> list[Seen]:
    """The records of whole lines, in files of so many bytes; several share a time, and some are stamped late."""
    found, offset, clock = [], 0, SECOND
    for number, text in enumerate(texts):
        if offset >= rotate_at:
            # A rotation takes longer than two pipes are apart.
            offset, clock = 0, clock + 2 * SECOND
        clock += 10 if number % same_time == 0 else 0
        late = 5 if number % 5 == 1 and offset else 0
        end = offset + 40 + len(text)
        found.append(Seen(clock - late, offset, end, "stdout", True, text))
        offset = end
    return found


def text_of(book: Book, deliveries: Sequence[Sequence[Seen]], *, again: bool = True) -> bytes:
    """All that is numbered after these deliveries; each pile waits once and is then looked at without patience."""
    text, rest = b"", list[Seen]()
    for delivery in deliveries:
        taken = book.take([*rest, *delivery], waited=lambda _: False)
        text += b"".join(record.text for record in taken.records)
        rest = taken.rest
    taken = book.take(rest, waited=lambda _: True)
    return text + b"".join(record.text for record in taken.records)


lines = st.lists(st.binary(max_size=12).map(lambda text: text.replace(b"\n", b"")), max_size=60)


@given(texts=lines, rotate_at=st.integers(60, 600), seed=st.integers(0, 2**32))
def test_any_order_of_repeated_deliveries_gives_each_line_once_and_in_order(
    texts: list[bytes], rotate_at: int, seed: int
) -> None:
    chance = random.Random(seed)
    seen = files_of(texts, rotate_at=rotate_at)
    deliveries = []
    for _ in range(3):
        start = 0
        while start < len(seen):
            size = chance.randint(1, 10)
            deliveries.append(seen[start : start + size])
            start += size
    # The first time in the order of the file, as a collector reads; repetitions come whenever they like.
    first = deliveries[: len(deliveries) // 3]
    repeated = [*deliveries[len(deliveries) // 3 :]]
    for delivery in repeated:
        first.insert(chance.randint(0, len(first)), delivery)
    shuffled: list[Sequence[Seen]] = list(first)
    assert text_of(Book(), shuffled) == b"".join(text + b"\n" for text in texts)


@given(texts=lines, rotate_at=st.integers(60, 600), at=st.integers(0, 60))
def test_a_book_that_is_written_down_and_read_again_goes_on(texts: list[bytes], rotate_at: int, at: int) -> None:
    seen = files_of(texts, rotate_at=rotate_at)
    book = Book()
    first = book.take(seen[:at], waited=lambda _: True)
    again = Book(
        [Span(*span) for span in book.spans], {pipe: OpenLine(*line) for pipe, line in book.open_lines.items()}
    )
    second = again.take(seen, waited=lambda _: True)
    written = b"".join(record.text for record in [*first.records, *second.records])
    assert written == b"".join(text + b"\n" for text in texts)
    assert not first.holes + second.holes


def test_the_rest_of_a_rotated_file_comes_before_its_successor() -> None:
    old = [Seen(SECOND + n, n * 10, n * 10 + 10, "stdout", True, b"old %d" % n) for n in range(6)]
    new = [Seen(2 * SECOND + n, n * 10, n * 10 + 10, "stdout", True, b"new %d" % n) for n in range(3)]
    book = Book()
    begun = book.take(old[:3] + new, waited=lambda record: record.text == b"old 0")
    assert [record.text for record in begun.records] == [b"old 0\n", b"old 1\n", b"old 2\n"]
    then = book.take([*begun.rest, *old[3:]], waited=lambda _: True)
    assert [record.text for record in then.records] == [
        b"old 3\n",
        b"old 4\n",
        b"old 5\n",
        b"new 0\n",
        b"new 1\n",
        b"new 2\n",
    ]


def test_bytes_that_never_come_are_a_hole() -> None:
    seen = [Seen(SECOND + n, n * 10, n * 10 + 10, "stdout", True, b"%d" % n) for n in range(6)]
    book = Book()
    taken = book.take([*seen[:2], *seen[4:]], waited=lambda _: True)
    assert [record.text for record in taken.records] == [b"0\n", b"1\n", b"4\n", b"5\n"]
    assert taken.holes == [(2, SECOND + 1, SECOND + 4, 20)]


def test_fragments_of_two_pipes_are_joined_each_with_its_own() -> None:
    def seen(number: int, pipe: str, whole: bool, text: bytes) -> Seen:
        return Seen(SECOND + number, number * 10, number * 10 + 10, pipe, whole, text)

    book = Book()
    taken = book.take(
        [
            seen(0, "stdout", False, b"a long "),
            seen(1, "stderr", True, b"an error"),
            seen(2, "stdout", True, b"line"),
            seen(3, "stdout", False, b"without end"),
        ],
        waited=lambda _: True,
    )
    assert [(record.time_ns - SECOND, record.text) for record in taken.records] == [
        (1, b"an error\n"),
        (0, b"a long line\n"),
    ]
    assert [record.text for record in book.finish()] == [b"without end"]


def test_a_line_of_the_runtime_s_file() -> None:
    line = b"2026-11-30T14:00:00.123456789+01:00 stderr P half a line "
    found = parse_cri(line, offset=100)
    assert found is not None
    assert found.time_ns % SECOND == 123_456_789
    assert found[1:] == (100, 100 + len(line) + 1, "stderr", False, b"half a line ")
    assert parse_cri(b"2026-11-30T14:00:00Z stdout F ", offset=0) is not None
    for other in (b"", b"no log line", b"2026-11-30T14:00:00Z", b"2026-11-30T14:00:00Z pipe F x"):
        assert parse_cri(other, offset=0) is None
