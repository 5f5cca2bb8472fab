"""What a line is, and what a screen shows of it."""

from hypothesis import given, settings
from hypothesis import strategies as st

from portal.logs.policy import (
    CHUNK_BYTES,
    CHUNK_LINES,
    DISPLAY_BYTES,
    LINE_BYTES,
    decode,
    display_text,
    is_record,
    joins,
    packs,
    pieces,
)
from portal.logs.specs import Record


def test_case_09_a_progress_bar_of_200_steps_is_one_short_line_in_its_last_state() -> None:
    bar = "".join(f"{step / 2:5.1f} % |{'#' * (step // 10):20}| {step}/200\r" for step in range(201))
    assert display_text(bar) == "100.0 % |####################| 200/200"
    assert display_text(bar + "\r") == display_text(bar)
    assert display_text(bar + "done") == "done"


def test_a_line_without_carriage_return_is_shown_as_it_is() -> None:
    assert display_text("plain \x1b[31mred\x1b[0m text\tand a tab") == "plain \x1b[31mred\x1b[0m text\tand a tab"


def test_colours_set_by_overwritten_text_still_count() -> None:
    assert display_text("\x1b[31mold\rnew") == "\x1b[31mnew"
    assert display_text("\x1b[31mold\x1b[0m\r\x1b[32mnew") == "\x1b[0m\x1b[32mnew"


def test_a_nul_is_shown_by_its_sign() -> None:
    assert display_text(decode(b"a\x00b\xff\n")) == "a␀b\N{REPLACEMENT CHARACTER}"


def test_a_windows_line_end_hides_nothing() -> None:
    assert display_text(decode(b"text\r\n")) == "text"


@given(st.text(max_size=30), st.integers(1, 3000))
@settings(max_examples=100, deadline=None)
def test_what_is_shown_is_bounded_and_says_what_it_left_out(text: str, times: int) -> None:
    shown = display_text(text * times)
    assert len(shown.encode("utf-8", "replace")) <= DISPLAY_BYTES
    if len((text * times).encode("utf-8", "replace")) > DISPLAY_BYTES and "\r" not in text and "\0" not in text:
        assert "more bytes in the download" in shown


def test_a_megabyte_is_shown_by_its_beginning() -> None:
    shown = display_text("é" * 1_000_000)
    assert shown.startswith("éééé")
    assert shown.endswith("1,991,856 more bytes in the download)")


@given(st.binary(min_size=1, max_size=300).map(lambda text: text.replace(b"\n", b"")), st.integers(1, 9000))
@settings(max_examples=60, deadline=None)
def test_the_pieces_of_a_long_line_are_records_and_give_the_line_again(text: bytes, times: int) -> None:
    line = text * times + b"\n"
    found = pieces(line)
    assert b"".join(found) == line
    assert all(is_record(piece) for piece in found)
    assert all(not piece.endswith(b"\n") for piece in found[:-1])


def test_what_is_not_one_line_is_no_record() -> None:
    assert not is_record(b"")
    assert not is_record(b"a\nb\n")
    assert not is_record(b"a\nb")
    assert not is_record(b"x" * (LINE_BYTES + 1))
    assert is_record(b"\n")
    assert is_record(b"x" * LINE_BYTES + b"\n")


@given(st.lists(st.sampled_from([b"\n", b"short\n", b"x" * 5000 + b"\n", b"y" * 70_000, b"z" * 200_000]), max_size=60))
@settings(max_examples=60, deadline=None)
def test_chunks_are_bounded_and_a_torn_line_ends_its_chunk(texts: list[bytes]) -> None:
    records = [Record(n, text) for n, text in enumerate(texts)]
    groups = list(packs(records))
    assert [record for group in groups for record in group] == records
    for group in groups:
        assert len(group) <= CHUNK_LINES
        assert len(group) == 1 or sum(len(record.text) for record in group) <= CHUNK_BYTES
        assert all(record.text.endswith(b"\n") for record in group[:-1])


def test_single_lines_are_merged_without_writing_any_of_them_often() -> None:
    chunks: list[int] = []
    written = 0
    for _ in range(2000):
        lines = 1
        while chunks and joins(before=(chunks[-1], 0), lines=lines, size=0):
            lines += chunks.pop()
        chunks.append(lines)
        written += lines
    assert sum(chunks) == 2000
    assert len(chunks) < 20
    assert written < 2000 * 10
