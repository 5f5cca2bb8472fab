"""Lines of a log on a terminal. Pure."""

import re
from datetime import UTC, datetime, timedelta

from portal.cli.errors import Trouble

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_ESCAPE = re.compile(
    # Colours, which stay; other control sequences; operating system commands with their end; single escapes.
    r"(?P<colour>\x1b\[[0-9;:]*m)|\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_].*?(?:\x07|\x1b\\|$)|\x1b[ -/]*[0-~]?"
)
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f]")


def harmless(text: str) -> str:
    """A line as a terminal may show it: colours stay; nothing moves the cursor, sets a title or answers for the person.

    Of what a carriage return overwrote, the last state is shown.
    """
    shown = text.rstrip("\r")
    shown = shown[shown.rfind("\r") + 1 :]
    shown = _ESCAPE.sub(lambda found: found["colour"] or "", shown)
    coloured = "\x1b[" in shown
    shown = _CONTROL.sub("\ufffd", shown)
    return f"{shown}\x1b[0m" if coloured else shown


def plain(text: str) -> str:
    """Without any escape, for comparing."""
    return _ESCAPE.sub("", text)


def moment(text: str, now: datetime) -> datetime:
    """ "10m", "2 h", "1d" before now, or a time such as 2026-11-30T14:00:00Z. Raises `Trouble`."""
    found = re.fullmatch(r"\s*(\d{1,9})\s*([smhd])\s*", text)
    if found:
        try:
            return now - timedelta(seconds=int(found[1]) * _UNITS[found[2]])
        except OverflowError:
            return datetime.min.replace(tzinfo=UTC)
    try:
        given = datetime.fromisoformat(text)
    except ValueError:
        raise Trouble(f"“{text}” is no time. Write 10m, 2h, 1d, or 2026-11-30T14:00:00+01:00") from None
    return given.astimezone(UTC)
