"""Keys that the embedded mode makes for itself, once, readable by its own user only."""

import os
import secrets
from pathlib import Path

from cryptography.fernet import Fernet


def kept_key(folder: Path, name: str) -> str:
    """The key in `folder/name`, made on first use. Two processes that start together get the same one."""
    path = folder / name
    try:
        return path.read_text().strip()
    except FileNotFoundError:
        folder.mkdir(parents=True, exist_ok=True)
    key = Fernet.generate_key().decode() if name.startswith("fernet") else secrets.token_urlsafe(50)
    draft = folder / f".{name}.{os.getpid()}"
    draft.touch(mode=0o600)
    draft.write_text(key)
    try:
        os.link(draft, path)  # fails where another process was first, and never shows a half-written key
    except FileExistsError:
        pass
    finally:
        draft.unlink()
    return path.read_text().strip()
