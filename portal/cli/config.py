"""Where the portal is and who one is: from the environment, else from a file that only its owner can read."""

import os
import tomllib
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from portal.cli.errors import Trouble


@dataclass(frozen=True)
class Config:
    """`address` without a slash at its end, such as `https://gpu.example.org`."""

    address: str
    token: str


def path() -> Path:
    """`$BEAMTIME_CONFIG`, else `beamtime/config.toml` in the folder for settings."""
    given = os.environ.get("BEAMTIME_CONFIG")
    if given:
        return Path(given)
    home = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(home) / "beamtime" / "config.toml"


def load() -> Config:
    """`BEAMTIME_ADDRESS` and `BEAMTIME_TOKEN` count more than the file. Raises `Trouble` with the remedy."""
    file = path()
    kept: dict[str, object] = {}
    if file.exists():
        try:
            kept = tomllib.loads(file.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
            raise Trouble(f"{file} cannot be read ({error}). Write it anew with: beamtime login") from error
    address = os.environ.get("BEAMTIME_ADDRESS") or str(kept.get("address", ""))
    token = os.environ.get("BEAMTIME_TOKEN") or str(kept.get("token", ""))
    if not address or not token:
        raise Trouble("Where is the portal, and who are you? Begin with: beamtime login https://your-portal")
    return Config(checked(address), token)


def checked(address: str) -> str:
    """Raises `Trouble` for what is no web address."""
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise Trouble(f"“{address}” is no web address. It begins with https://, as in https://gpu.example.org")
    return address.rstrip("/")


def save(config: Config) -> Path:
    """Write the file, readable by its owner only from its first moment on."""
    file = path()
    file.parent.mkdir(parents=True, exist_ok=True)
    text = f"address = {_quoted(config.address)}\ntoken = {_quoted(config.token)}\n"
    fresh = file.with_suffix(".new")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as out:
        out.write(text)
    fresh.replace(file)
    return file


def _quoted(text: str) -> str:
    if any(letter < " " or letter in '"\\' for letter in text):
        raise Trouble("An address or a token has no quotes, backslashes or line breaks in it.")
    return f'"{text}"'
