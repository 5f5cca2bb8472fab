"""A way to the API server on which answers get lost, after the request has arrived and taken effect."""

from __future__ import annotations

import base64
import http.client
import re
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import yaml


class Wire:
    """Forwards every request to the API server that a kubeconfig names; `swallow` says whose answers are lost."""

    def __init__(self, kubeconfig: Path, folder: Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        cluster = config["clusters"][0]["cluster"]
        target = urlsplit(cluster["server"])
        self._where = (str(target.hostname), int(target.port or 443))
        trust = folder / "wire-ca.crt"
        trust.write_bytes(base64.b64decode(cluster.pop("certificate-authority-data")))
        self._tls = ssl.create_default_context(cafile=str(trust))
        self._lock = threading.Lock()
        # [method, pattern of the path, seconds of silence before the line is cut, how often]
        self._losses: list[tuple[str, re.Pattern[str], float, int]] = []
        # What was lost: "POST /apis/…", with the status that the API server had answered.
        self.lost: list[tuple[str, int]] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        cluster["server"] = f"http://127.0.0.1:{self._server.server_port}"
        self.kubeconfig = folder / "wire.kubeconfig"
        self.kubeconfig.touch(mode=0o600)
        self.kubeconfig.write_text(yaml.safe_dump(config))

    @contextmanager
    def open(self) -> Iterator[Wire]:
        thread = threading.Thread(target=self._server.serve_forever)
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()
            thread.join()

    def swallow(self, method: str, path: str, *, silence: float = 0.0, times: int = 1) -> None:
        """Lose the next `times` answers to requests whose path matches; the line is cut after `silence` seconds."""
        with self._lock:
            self._losses.append((method, re.compile(path), silence, times))

    def _loss(self, method: str, path: str) -> float | None:
        with self._lock:
            for number, (which, pattern, silence, times) in enumerate(self._losses):
                if which == method and pattern.search(path):
                    self._losses[number : number + 1] = [(which, pattern, silence, times - 1)] if times > 1 else []
                    return silence
        return None

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        wire = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def forward(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                upstream = http.client.HTTPSConnection(*wire._where, timeout=30, context=wire._tls)
                try:
                    headers = {name: value for name, value in self.headers.items() if name.lower() != "host"}
                    upstream.request(self.command, self.path, body, headers)
                    answer = upstream.getresponse()
                    content = answer.read()
                finally:
                    upstream.close()
                silence = wire._loss(self.command, self.path)
                if silence is not None:
                    wire.lost.append((f"{self.command} {self.path}", answer.status))
                    self._fall_silent(silence)
                    return
                self.send_response(answer.status)
                self.send_header("Content-Type", answer.headers.get("Content-Type", "application/json"))
                self.send_header("Content-Length", str(len(content)))
                # The caller may have been killed meanwhile.
                with suppress(ConnectionError):
                    self.end_headers()
                    self.wfile.write(content)

            def _fall_silent(self, seconds: float) -> None:
                """Until the caller has given up, or for so long; then the line is cut."""
                self.close_connection = True
                self.connection.settimeout(seconds or 0.001)
                with suppress(OSError):
                    self.connection.recv(1)
                with suppress(OSError):
                    self.connection.shutdown(socket.SHUT_RDWR)

            do_GET = do_POST = do_PATCH = do_DELETE = forward  # noqa: N815 - the library's names

            def log_message(self, *_: object) -> None:
                """Quiet: a failing test says what it needs."""

        return Handler
