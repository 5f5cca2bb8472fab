"""Small helpers for sentences about what was given."""

import difflib
import re
from collections.abc import Iterable, Sequence

from django.utils.translation import gettext as _

_SHOWN = 40
_LISTED = 12
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


class Bad(ValueError):
    """A value cannot be taken. Each message is one sentence for people; none ever holds a secret."""

    def __init__(self, *messages: str, code: str = "invalid") -> None:
        super().__init__(*messages)
        self.messages = messages
        self.code = code


def shown(value: object) -> str:
    """What was given, short enough for a sentence, with its type where that is the point."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() if value.bit_length() > 64:
            return _("a number of more than 19 digits")
        case int() | float():
            return f"{value:,}" if isinstance(value, int) else repr(value)
        case str():
            return _("the text “{text}”").format(text=short(value))
        case list() | tuple():
            return _("a list")
        case dict():
            return _("an object")
    return _("something else")


def short(text: str) -> str:
    """A text cut to a length that fits a sentence, control characters made visible."""
    cut = text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in cut)


def number(value: float) -> str:
    """A number for people: whole ones grouped."""
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


def listed(names: Iterable[str]) -> str:
    """Names, comma-separated; many are cut."""
    every = list(names)
    rest = len(every) - _LISTED
    words = ", ".join(every[:_LISTED])
    return _("{names} and {count} more").format(names=words, count=rest) if rest > 0 else words


def nearest(name: str, known: Sequence[str]) -> str:
    """The known name that was probably meant, or ""."""
    found = difflib.get_close_matches(name.lower()[:100], known, n=1, cutoff=0.6)
    return found[0] if found else ""


def hint(name: str, known: Sequence[str]) -> str:
    """The sentence after an unknown name: what was probably meant, or what there is."""
    guess = nearest(name, known)
    if guess:
        return _("Did you mean “{name}”?").format(name=guess)
    return _("There are: {names}.").format(names=listed(known)) if known else _("There are none.")


def utf8_size(text: str) -> int:
    """Bytes of a text in UTF-8. Raises `Bad` for what no program can receive: NUL and halves of surrogate pairs."""
    if "\0" in text:
        raise Bad(_("It holds a NUL character, which no program can receive as text. Remove it."), code="nul")
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        raise Bad(
            _("It holds half of a surrogate pair, which is not valid Unicode. Remove it."), code="unicode"
        ) from None


def is_variable_name(name: str) -> bool:
    """Whether a shell and every language can read an environment variable of this name."""
    return bool(_VARIABLE.fullmatch(name))
