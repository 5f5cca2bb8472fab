"""A raw watch: one HTTP request, one JSON object a line, and the moment at which each line came."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from kubernetes.client import ApiClient, Configuration
from kubernetes.config import load_kube_config

from tests.bench.processes import until

Object = dict[str, Any]


def api(kubeconfig: Path) -> ApiClient:
    """The Kubernetes client with the rights of this file."""
    configuration = Configuration()
    load_kube_config(config_file=str(kubeconfig), client_configuration=configuration)  # type: ignore[no-untyped-call]
    return ApiClient(configuration)


class RawLines:
    """An answer without an end, read line by line in a thread of its own; each with its moment by `time.time()`.

    That is the clock that a browser has too.
    """

    def __init__(self, kubeconfig: Path) -> None:
        self._line = connection(api(kubeconfig).configuration)
        self._thread = threading.Thread(target=self._read, daemon=True)

    def _path(self) -> str:
        """What to ask for; may ask over the same connection before."""
        raise NotImplementedError

    def _take(self, line: bytes, moment: float) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        self._line.connect()
        path = self._path()
        # Kept here, because the connection gives it away with an answer that has no end.
        self._socket = self._line.sock
        self._line.request("GET", path)
        self._answer = self._line.getresponse()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Not closed while the thread reads it, which would wait for the next line.
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._line.close()

    def _read(self) -> None:
        with contextlib.suppress(OSError, http.client.HTTPException):
            # What has no line end was cut by us.
            while (line := self._answer.readline()).endswith(b"\n"):
                self._take(line, time.time())


class RawWatch(RawLines):
    """Notes when something was first seen. `name` makes a key of an event, or None for what does not matter.

    `at` has the keys' moments.
    """

    def __init__(self, kubeconfig: Path, path: str, name: Callable[[str, Object], str | None]) -> None:
        super().__init__(kubeconfig)
        self.at: dict[str, float] = {}
        self._list, self._name = path, name

    def _path(self) -> str:
        self._line.request("GET", f"{self._list}?limit=1")
        listed = json.loads(self._line.getresponse().read())
        version = listed["metadata"]["resourceVersion"]
        return f"{self._list}?watch=1&resourceVersion={version}&timeoutSeconds=3600"

    def until_seen(self, keys: set[str], *, seconds: float) -> None:
        """Wait for all of these keys. Raises BenchError if one does not come."""
        until(f"{len(keys)} events at a raw watch", lambda: keys <= self.at.keys(), seconds=seconds)

    def _take(self, line: bytes, moment: float) -> None:
        event = json.loads(line)
        key = self._name(event["type"], event["object"])
        if key is not None:
            self.at.setdefault(key, moment)


def connection(configuration: Configuration) -> http.client.HTTPSConnection:
    where = urlsplit(configuration.host)
    context = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
    if configuration.cert_file:
        context.load_cert_chain(configuration.cert_file, configuration.key_file)
    return http.client.HTTPSConnection(str(where.hostname), where.port, context=context)
