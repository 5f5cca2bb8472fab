"""What no process of this machine can be given, said before anything is made."""

import os
from collections.abc import Mapping

from portal.clusters.specs import JobSpec, PermanentError

# Linux takes at most 128 KiB in one argument or one variable, its name, "=" and the closing zero byte included
# (MAX_ARG_STRLEN in execve(2)).
LONGEST = 128 * 1024 - 1


def check(spec: JobSpec, secrets: Mapping[str, str]) -> None:
    """Raises `PermanentError` where the command could not be started as asked. Values are never repeated in it."""
    work = spec.work
    if not work.command:
        raise _invalid("There is no command to start.")
    for word in (*work.command, *work.args):
        _text("The command", word, 0)
    missing = [name for name in work.secret_env if name not in secrets]
    if missing:
        raise _invalid(f"The secret {missing[0]} has no value.")
    for name, value in (*work.env, *((name, secrets[name]) for name in work.secret_env)):
        if not name or "=" in name:
            raise _invalid(f"{name!r} is no name of an environment variable.")
        _text("The name of a variable", name, 0)
        _text(f"The variable {name}", value, len(os.fsencode(name)) + 1)
    for part in (spec.namespace, spec.name):
        if not part or "/" in part or part.startswith("."):
            raise _invalid(f"{part!r} is no name of an object.")


def _text(what: str, text: str, more: int) -> None:
    if "\0" in text:
        raise _invalid(f"{what} contains a zero byte, which no process can be given.")
    try:
        size = len(text.encode("utf-8", "surrogateescape")) + more
    except UnicodeEncodeError:
        raise _invalid(f"{what} contains half of a surrogate pair, which is no text.") from None
    if size > LONGEST:
        raise _invalid(f"{what} is {size:,} bytes long; a process takes at most {LONGEST:,}.")


def _invalid(message: str) -> PermanentError:
    return PermanentError("Invalid", message)
