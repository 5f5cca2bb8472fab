"""A program that talks to the portal's REST API with a token, as any script of a researcher would."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

PATIENCE_SECONDS = 20.0
# The most lines of one page.
PAGE = 5000


@dataclass(frozen=True)
class Answer:
    """An HTTP answer, whatever its status."""

    status: int
    body: bytes
    headers: Mapping[str, str]

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Client:
    """One person's token; `get` and `post` insist on success, `call` takes every answer."""

    def __init__(self, address: str, token: str) -> None:
        self._root = f"{address}/api/v1/"
        self._token = token

    def call(self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Answer:
        """`path` is below /api/v1/. Raises OSError when the portal does not answer."""
        given = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json", **(headers or {})}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._root + path, data=data, headers=given, method=method)  # noqa: S310 - our own address
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as answer:  # noqa: S310
                return Answer(answer.status, answer.read(), dict(answer.headers))
        except urllib.error.HTTPError as refused:
            with refused:
                return Answer(refused.code, refused.read(), dict(refused.headers))

    def get(self, path: str) -> Any:
        answer = self.call("GET", path)
        assert answer.status == 200, f"GET {path}: {answer.status} {answer.body.decode(errors='replace')}"
        return answer.json

    def post(self, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Any:
        answer = self.call("POST", path, {} if body is None else body, headers)
        assert answer.status in {200, 201}, f"POST {path}: {answer.status} {answer.body.decode(errors='replace')}"
        return answer.json

    def download(self, stream: str) -> bytes:
        """A log byte for byte."""
        answer = self.call("GET", f"streams/{stream}/download/")
        assert answer.status == 200, answer.body
        return answer.body

    def lines(self, stream: str, *, limit: int = PAGE) -> list[dict[str, Any]]:
        """Every line of a log, page by page, as far as it is stored."""
        found: list[dict[str, Any]] = []
        first = 1
        while True:
            page = self.get(f"streams/{stream}/lines/?from={first}&limit={limit}")
            assert page["from"] == first
            found += page["lines"]
            if page["to"] == first or page["complete"]:
                return found
            first = page["to"]
