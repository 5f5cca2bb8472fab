"""Looking through a whole log: every hit once, by number, in either direction, a bounded time at a call."""

import itertools
import re
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from portal.logs import services
from portal.logs.models import Stream
from portal.logs.policy import pieces
from portal.logs.policy.errors import ERRORS
from portal.logs.policy.patterns import LONGEST, BadPattern, Pattern, pattern_of
from portal.logs.search import Found, marks, opening_line, search
from portal.logs.specs import Record

pytestmark = pytest.mark.django_db


def write(stream: Stream, *texts: bytes) -> None:
    stream.refresh_from_db()
    records = [Record(10**18, piece) for text in texts for piece in pieces(text)]
    assert services.append(stream_id=stream.pk, first_line=stream.next_line, records=records)
    stream.refresh_from_db()


def text(words: str, *, regex: bool = False, case: bool = True) -> Pattern:
    return pattern_of(words, regex=regex, case=case)


def everything(stream: Stream, pattern: Pattern, *, limit: int = 3, **options: object) -> list[int]:
    """All hits, asked for in portions as a page does it."""
    hits: list[int] = []
    position: int | None = 1
    while position is not None:
        found = search(stream, pattern, first=position, limit=limit, **options)  # type: ignore[arg-type]
        assert len(found.hits) == found.count <= limit
        assert found.next is None or found.next > position
        hits += found.hits
        position = found.next
    return hits


def test_every_hit_is_found_once_by_its_number(stream: Stream) -> None:
    write(stream, *(f"step {n} loss {n % 7}\n".encode() for n in range(1, 2001)))
    assert everything(stream, text("loss 3"), limit=50) == [n for n in range(1, 2001) if n % 7 == 3]
    assert everything(stream, text(r"^step \d00 ", regex=True)) == [n * 100 for n in range(1, 10)]
    assert everything(stream, text("STEP 1999", case=False)) == [1999]
    assert everything(stream, text("nothing of the kind")) == []


def test_counting_needs_no_numbers(stream: Stream) -> None:
    write(stream, *(b"x\n" for _ in range(3000)))
    found = search(stream, text("x"), first=1, limit=0)
    assert (found.count, found.hits, found.next, found.lines) == (3000, [], None, 3000)


def test_backwards_finds_the_same_lines_the_last_first(stream: Stream) -> None:
    write(stream, *(b"a hit\n" if n % 97 == 0 else b"a miss\n" for n in range(1, 9001)))
    hits: list[int] = []
    position: int | None = 10**15
    while position is not None:
        found = search(stream, text("hit"), first=position, direction="backward", limit=7)
        hits += found.hits
        position = found.next
    assert hits == [n for n in range(9000, 0, -1) if n % 97 == 0]
    assert search(stream, text("hit"), first=97, direction="backward", limit=1).hits == [97]
    assert search(stream, text("hit"), first=96, direction="backward", limit=1) == Found(lines=9000)


def test_a_used_up_budget_says_where_to_go_on(stream: Stream) -> None:
    """The clock ticks once at each look, so every call ends early; together they still see every line once."""
    for _ in range(4):
        write(stream, *(b"%0512d\n" % n for n in range(1000)))
    ticks = itertools.count()
    found = search(stream, text("none"), first=1, budget_seconds=0, clock=lambda: next(ticks))
    assert found.next is not None
    assert 1 < found.next < 4000
    for pattern in (text("0999"), text("0*999$", regex=True)):
        hits = everything(stream, pattern, budget_seconds=0, clock=lambda: next(ticks))
        assert hits == [1000, 2000, 3000, 4000]
    back = search(stream, text("none"), first=4000, direction="backward", budget_seconds=0, clock=lambda: next(ticks))
    assert back.next is not None
    assert back.next < 4000


def test_a_line_that_is_numbered_as_several_keeps_the_numbers_right(stream: Stream) -> None:
    write(stream, b"first\n", b"y" * 600_000 + b"needle\n", b"needle behind\n", b"needle without an end")
    assert stream.next_line == 7
    assert everything(stream, text("needle")) == [4, 5, 6]
    assert everything(stream, text("^needle", regex=True)) == [5, 6]
    assert search(stream, text("needle"), first=10, direction="backward", limit=9).hits == [6, 5, 4]


def test_an_expression_sees_one_line_at_a_time(stream: Stream) -> None:
    write(stream, b"ab\n", b"\n", b"c\n", b"d\n")
    assert everything(stream, text("^$", regex=True)) == [2]
    assert everything(stream, text("b[^x]*c", regex=True)) == []
    assert everything(stream, text(r"b\s*c", regex=True)) == []
    assert everything(stream, text("(?s)b.*d", regex=True)) == []
    assert everything(stream, text("x*", regex=True), limit=2) == [1, 2, 3, 4]
    assert everything(stream, text("^[abcd]+$", regex=True)) == [1, 3, 4]


def test_colours_inside_what_is_looked_for_do_not_hide_it(stream: Stream) -> None:
    write(
        stream,
        b"loss: \x1b[1;32m3.2\x1b[0m\n",
        b"\x1b]8;;http://x/3.2\x07link\x1b]8;;\x07\n",
        "größe 3\n".encode(),
        b"\xff3.2\n",
    )
    assert everything(stream, text("loss: 3.2")) == [1]
    assert everything(stream, text("3.2")) == [1, 4]
    assert everything(stream, text("größe")) == [3]
    assert everything(stream, text("GRÖSSE|GRÖßE", regex=True, case=False)) == [3]


EXPLOSIVE = [r"(x+x+)+y", r"(a|aa)+$", r"^(([a-z])+.)+[A-Z]([a-z])+$", r"(.*)*(.*)*(.*)*z", r"(.{0,30}){0,10}zzz$"]


@pytest.mark.parametrize("expression", EXPLOSIVE)
def test_an_expression_that_would_explode_is_over_in_time(stream: Stream, expression: str) -> None:
    """As long as it would take others to try 40 letters in all ways, this looks through half a megabyte."""
    write(stream, *([b"x" * 250 + b"!\n", b"a" * 250 + b"!\n"] * 1000))
    began = time.process_time()
    found = search(stream, text(expression, regex=True), first=1, budget_seconds=0.3)
    assert time.process_time() - began < 5, "seconds of work; half a second of time in ordinary conditions"
    assert found.count == 0


@pytest.mark.parametrize(
    ("words", "regex", "said"),
    [
        ("", False, "Say what to look for"),
        ("x" * (LONGEST + 1), False, "At most 500 characters"),
        ("a\nb", False, "A line is searched at a time"),
        ("(a", True, "not a regular expression"),
        ("(?=a)", True, "not possible here"),
        (r"(a)\1", True, "not a regular expression"),
        (r"\Aa", True, "use ^ and $"),
        ("(?-m)^a", True, "use ^ and $"),
        ("((a{100}){100}){100}", True, "not a regular expression|too large"),
        ("((.{0,30}){0,30})z", True, "too large"),
        ("\ud800", False, ""),
    ],
)
def test_a_pattern_that_cannot_be_used_says_why(words: str, regex: bool, said: str) -> None:
    if not said:
        assert pattern_of(words, regex=regex, case=True).find(b"abc", 0) == -1
        return
    with pytest.raises(BadPattern, match=said.replace("^", r"\^").replace("$", r"\$")):
        pattern_of(words, regex=regex, case=True)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    texts=st.lists(st.text(alphabet="ab é\x1b[3m", max_size=6), min_size=1, max_size=30),
    words=st.text(alphabet="ab é", min_size=1, max_size=3),
    limit=st.integers(1, 4),
)
def test_any_text_in_any_portions_is_found_where_it_stands(
    stream: Stream, texts: list[str], words: str, limit: int
) -> None:
    stream.chunks.all().delete()
    Stream.objects.filter(pk=stream.pk).update(next_line=1, bytes=0)
    write(stream, *(f"{line}\n".encode() for line in texts))
    seen = [re.sub("\x1b(?:\\[[0-?]*[ -/]*[@-~]|[ -/]*[0-Z\\\\^-~])", "", line) for line in texts]
    expected = [n for n, line in enumerate(seen, 1) if words in line]
    assert everything(stream, text(words), limit=limit) == expected
    lower = [n for n, line in enumerate(seen, 1) if words.lower() in line.lower()]
    assert everything(stream, text(words, case=False), limit=limit) == lower


def test_marks_are_characters_of_what_a_screen_shows(stream: Stream) -> None:
    write(stream, "é loss \x1b[31m3\x1b[0m loss\n".encode(), b"10 loss\r20 loss\n", b"no\n")
    assert marks(stream, text("loss"), first=1, end=10) == {1: [(2, 6), (9, 13)], 2: [(3, 7)]}
    assert marks(stream, text(r"\d", regex=True), first=2, end=3) == {2: [(0, 1), (1, 2)]}


def test_a_failed_log_opens_at_its_first_error(stream: Stream) -> None:
    assert opening_line(stream) is None
    write(stream, b"step 1\n", b"Traceback (most recent call last):\n", b"  File x\n", b"ValueError: no\n", b"bye\n")
    assert opening_line(stream) == 2
    assert search(stream, ERRORS, first=5, direction="backward", limit=1).hits == [4]
    services.complete(stream_id=stream.pk)
    stream.refresh_from_db()
    assert opening_line(stream) == opening_line(stream) == 2


def test_a_log_too_long_to_look_through_opens_at_the_last_error_near_its_end(stream: Stream) -> None:
    write(stream, *(b"%0600d\n" % n for n in range(1000)), b"Error: late\n", b"Error: last\n", b"bye\n")
    assert opening_line(stream, budget_seconds=-1) == 1002
