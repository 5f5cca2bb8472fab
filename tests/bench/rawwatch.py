"""A raw watch: one HTTP request, one JSON object a line, and the moment at which each line came."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import urllib3
from kubernetes.client import ApiClient, Configuration
from kubernetes.config import load_kube_config

from tests.bench.processes import until

Object = dict[str, Any]


def api(kubeconfig: Path) -> ApiClient:
    """The Kubernetes client with the rights of this file."""
    configuration = Configuration()
    load_kube_config(config_file=str(kubeconfig), client_configuration=configuration)  # type: ignore[no-untyped-call]
    return ApiClient(configuration)


class RawWatch:
    """Notes when something was first seen. `name` makes a key of an event, or None for what does not matter.

    `at` has the keys' moments by `time.time()`, which is the clock that a browser has too. In a thread of its own.
    """

    def __init__(self, kubeconfig: Path, path: str, name: Callable[[str, Object], str | None]) -> None:
        self.at: dict[str, float] = {}
        self._client = api(kubeconfig)
        self._address = f"{self._client.configuration.host}{path}"
        self._name = name
        self._answer: Any = None
        self._thread = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> Self:
        pool: urllib3.PoolManager = self._client.rest_client.pool_manager
        listed = json.loads(pool.request("GET", self._address + "?limit=1").data)
        version = listed["metadata"]["resourceVersion"]
        query = f"?watch=1&resourceVersion={version}&timeoutSeconds=3600"
        self._answer = pool.request("GET", self._address + query, preload_content=False, timeout=3700)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._answer.close()

    def until_seen(self, keys: set[str], *, seconds: float) -> None:
        """Wait for all of these keys. Raises BenchError if one does not come."""
        until(f"{len(keys)} events at a raw watch", lambda: keys <= self.at.keys(), seconds=seconds)

    def _read(self) -> None:
        rest = b""
        try:
            for chunk in self._answer.stream(65536, decode_content=False):
                moment = time.time()
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    event = json.loads(line)
                    key = self._name(event["type"], event["object"])
                    if key is not None:
                        self.at.setdefault(key, moment)
        except (urllib3.exceptions.HTTPError, OSError, ValueError, AttributeError):
            # Closed from outside: the measure has what it wants.
            return
