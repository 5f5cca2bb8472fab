"""Durations and memory, as people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.catalog.policy import format_duration, format_memory, parse_duration, parse_memory


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2 h 30 min", 9000),
        ("2h30min", 9000),
        ("  90   min ", 5400),
        ("90 minutes", 5400),
        ("1 day 2 hours", 93_600),
        ("3 d", 259_200),
        ("45 s", 45),
        ("0.5 h", 1800),
        ("0.001 s", 1),
        ("PT1H30M", 5400),
        ("PT90S", 90),
        ("P2D", 172_800),
        ("P1DT12H", 129_600),
        ("600", 600),
    ],
)
def test_durations_are_read(text: str, seconds: int) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text",
    [
        "",
        "h",
        "2 h 3 h",
        "30 min 2 h",
        "-1 h",
        "1:30",
        "PT",
        "P",
        "P1H",
        "1e3 s",
        "2 weeks",
        "5 h\0",
        "٣ h",
        "1 h!",
        "1.2.3 h",
    ],
)
def test_what_is_no_duration_is_not_guessed_at(text: str) -> None:
    assert parse_duration(text) is None


@pytest.mark.parametrize(
    ("text", "mib"), [("64 GiB", 65_536), ("64Gi", 65_536), ("512 MiB", 512), ("1 TiB", 1_048_576), ("0.5 GiB", 512)]
)
def test_memory_is_read(text: str, mib: int) -> None:
    assert parse_memory(text) == mib


@pytest.mark.parametrize("text", ["", "64 GB", "64G", "GiB", "-1 GiB", "64 KiB", "1,5 GiB", "64 GiB of it"])
def test_what_is_no_memory_is_not_guessed_at(text: str) -> None:
    assert parse_memory(text) is None


@given(st.integers(0, 10**8))
def test_a_duration_in_words_reads_back(seconds: int) -> None:
    assert parse_duration(format_duration(seconds)) == seconds


@given(st.integers(0, 10**8))
def test_memory_in_words_reads_back(mib: int) -> None:
    assert parse_memory(format_memory(mib)) == mib


@given(st.text(max_size=30))
def test_no_text_breaks_the_reading(text: str) -> None:
    parse_duration(text)
    parse_memory(text)
