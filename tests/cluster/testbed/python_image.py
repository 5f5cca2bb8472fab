"""The running CPython and its standard library, picked from this machine for an image.

The interpreter is laid under /usr/local, where it finds its library by looking upward from its own place; the shared
libraries go beside the C library, which is where the image's loader looks without being told.
"""

from __future__ import annotations

import importlib.util
import os
import py_compile
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

NAME = f"python{sys.version_info.major}.{sys.version_info.minor}"
# Together most of the library's size: its own tests, editors and windows, installers, and what was installed on top.
LEFT_OUT = {
    "__pycache__",
    "dist-packages",
    "ensurepip",
    "idlelib",
    "lib2to3",
    "pydoc_data",
    "site-packages",
    "test",
    "tests",
    "tkinter",
    "turtledemo",
}
NOT_LOADED = re.compile(r"(_tkinter|_test|xx|_xx|_ctypes_test|nis|ossaudiodev).*\.so$")


def interpreter() -> Path:
    """The real program behind the running one, behind any virtual environment and link."""
    base = Path(sys.base_prefix) / "bin" / NAME
    return (base if base.exists() else Path(sys.executable)).resolve()


def files(workshop: Path) -> Iterator[tuple[str, Path, int]]:
    """(path in the image, file of this machine, mode) for the interpreter, its library and the shared libraries.

    The library is compiled into the folder `workshop`: every container starts from a fresh copy of the image, so
    without that each would compile its imports again, which takes seconds under a small CPU limit.
    """
    program = interpreter()
    yield f"usr/local/bin/{NAME}", program, 0o755
    library = Path(sysconfig.get_path("stdlib", vars={"installed_base": sys.base_prefix}))
    binaries = [program]
    for directory, names, leaves in os.walk(library):
        # config-*: a static library of 60 MB and the makefiles for embedding.
        names[:] = sorted(name for name in names if name not in LEFT_OUT and not name.startswith("config-"))
        for leaf in sorted(leaves):
            path = Path(directory, leaf)
            if NOT_LOADED.match(leaf) or not path.is_file():
                continue
            if path.suffix == ".so":
                binaries.append(path)
            inside = path.relative_to(library)
            yield f"usr/local/lib/{NAME}/{inside}", path, 0o644
            if path.suffix == ".py":
                compiled = Path(importlib.util.cache_from_source(str(inside), optimization=""))
                where = f"/usr/local/lib/{NAME}/{inside}"
                # By hash and unchecked: the files in the image have no times that a check could compare.
                mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
                py_compile.compile(
                    str(path), str(workshop / compiled), dfile=where, doraise=True, invalidation_mode=mode
                )
                yield f"usr/local/lib/{NAME}/{compiled}", workshop / compiled, 0o644
    yield from _shared(binaries)


def _shared(binaries: list[Path]) -> Iterator[tuple[str, Path, int]]:
    """What the loader would load for these programs, by name; the loader itself at its own path."""
    found: dict[str, Path] = {}
    loader: str | None = None
    for binary in binaries:
        listing = subprocess.run(["ldd", str(binary)], capture_output=True, text=True, check=False).stdout
        for name, path in re.findall(r"^\s*(\S+) => (/\S+)", listing, re.MULTILINE):
            found.setdefault(name, Path(path))
        alone = re.search(r"^\s*(/\S*/ld-\S+)", listing, re.MULTILINE)
        loader = alone[1] if alone else loader
    if loader is None or "libc.so.6" not in found:
        return  # a static interpreter brings everything with it
    beside = str(found["libc.so.6"].parent).lstrip("/")
    for name, path in sorted(found.items()):
        yield f"{beside}/{name}", path.resolve(), 0o755
    yield loader.lstrip("/"), Path(loader).resolve(), 0o755
