"""A job's name: a text for people in any language, never the name of an object."""

import unicodedata

from portal.core.errors import Problem

LONGEST = 200
# They turn the reading direction of what follows, so a name could pretend to be another.
_TURNING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_WORDS = {"\n": "a line break", "\r": "a line break", "\t": "a tab", "\u2028": "a line break", "\u2029": "a line break"}
_FINE = "Letters, digits, spaces, dots, dashes and underscores are fine."


def name_problems(name: str) -> list[Problem]:
    """What is wrong with a name, one problem for each kind. An empty one is fine: the template's title is taken."""
    problems = []
    if len(name) > LONGEST:
        message = f"This name has {len(name)} characters, {LONGEST} is the most. Shorten it."
        problems.append(Problem("name", message, "too_long"))
    shown = list(dict.fromkeys(_shown(character) for character in name if _is_refused(character)))
    if shown:
        problems.append(Problem("name", f"A name cannot hold {' or '.join(shown[:3])}. {_FINE}", "character"))
    return problems


def _is_refused(character: str) -> bool:
    # Control characters, separators of lines and paragraphs, and halves of UTF-16 pairs, which are no text at all.
    return character == "/" or character in _TURNING or unicodedata.category(character) in {"Cc", "Zl", "Zp", "Cs"}


def _shown(character: str) -> str:
    if character == "/":
        return '"/"'
    return _WORDS.get(character, f"the character U+{ord(character):04X}")
