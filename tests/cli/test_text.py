"""What a log may do to the reader's terminal: show colours, and nothing else."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.cli.errors import Trouble
from portal.cli.text import harmless, moment, plain

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("plain ü 漢", "plain ü 漢"),
        ("\x1b[1;31mred\x1b[0m", "\x1b[1;31mred\x1b[0m\x1b[0m"),
        ("a\x1b[2Jb\x1b[10;10Hc", "abc"),
        ("\x1b]0;a title\x07text", "text"),
        ("\x1b]8;;https://evil.example\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]52;c;Zm9v", ""),
        ("\x1bP$q\x1b\\text\x1bcend", "textend"),
        ("10 %\r50 %\r100 %\r", "100 %"),
        ("bell\x07 and \x9b31m", "bell\ufffd and \ufffd31m"),
        ("tab\tstays", "tab\tstays"),
    ],
)
def test_only_colours_reach_the_terminal(written: str, shown: str) -> None:
    assert harmless(written) == shown


@given(st.text(alphabet=st.sampled_from("\x1b[]0;m8\x07\\PaH\x9b\r")))
def test_no_text_can_do_anything_but_colour(written: str) -> None:
    left = harmless(written)
    for part in left.split("\x1b")[1:]:
        assert part.startswith("[")
        assert part.lstrip("[0123456789;:").startswith("m")
    assert "\x07" not in left
    assert "\x9b" not in left


def test_escapes_do_not_stand_between_a_pattern_and_its_text() -> None:
    assert plain("\x1b[31mloss\x1b[0m 0.4") == "loss 0.4"


def test_times_as_people_write_them() -> None:
    assert moment("10m", NOW) == NOW - timedelta(minutes=10)
    assert moment(" 2 h ", NOW) == NOW - timedelta(hours=2)
    assert moment("2026-11-30T13:00:00+01:00", NOW) == NOW
    for text in ("", "soon", "-5m", "5 weeks"):
        with pytest.raises(Trouble):
            moment(text, NOW)
