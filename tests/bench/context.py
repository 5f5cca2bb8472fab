"""What the measures of one run share: sizes, a folder, and a cluster that is started when the first one needs it."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from tests.bench.kube import KubeSite

Made = TypeVar("Made")


class Bench:
    """`quick` makes every count small, to see whether the measures themselves work; such a run says so."""

    def __init__(self, folder: Path, *, quick: bool) -> None:
        self.folder = folder
        self.quick = quick
        self._stack = contextlib.ExitStack()
        self._kube: KubeSite | None = None
        self._shared: dict[object, Any] = {}
        self._began = time.monotonic()

    def count(self, whole: int, quick: int) -> int:
        """How many: as the target says, or few."""
        return quick if self.quick else whole

    def say(self, text: str) -> None:
        """Progress, for the person who waits."""
        print(f"[{time.monotonic() - self._began:6.1f} s] {text}", file=sys.stderr, flush=True)

    def fresh(self, name: str) -> Path:
        """A folder that is not there yet."""
        number = sum(1 for _ in self.folder.glob(f"{name}-*"))
        return self.folder / f"{name}-{number}"

    def kube(self) -> KubeSite:
        """The portal's four processes on a real Kubernetes with Kueue; the same for every measure of the run."""
        if self._kube is None:
            # Loads the cluster's harness, which the other measures do without.
            from tests.bench.kube import site

            self._kube = self._stack.enter_context(site(self))
        return self._kube

    def shared(self, make: Callable[[Bench], contextlib.AbstractContextManager[Made]]) -> Made:
        """What `make` gives, made once for all measures of the run and ended with it."""
        if make not in self._shared:
            self._shared[make] = self._stack.enter_context(make(self))
        found: Made = self._shared[make]
        return found

    def close(self) -> None:
        self._stack.close()
