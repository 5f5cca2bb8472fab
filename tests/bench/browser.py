"""A person's browser as far as the server sees it: one kept connection, cookies, forms sent with all their fields."""

from __future__ import annotations

import http.client
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from html.parser import HTMLParser
from http.cookies import SimpleCookie
from urllib.parse import urlsplit

PATIENCE = 30.0
# uvicorn closes a connection after five idle seconds; a browser dials again before that matters.
IDLE = 4.0


@dataclass(frozen=True)
class Page:
    """What came back, redirects not followed."""

    status: int
    body: str
    location: str


class Browser:
    """Signed in to nothing at first."""

    def __init__(self, address: str) -> None:
        where = urlsplit(address)
        self._address = address
        self._line = http.client.HTTPConnection(str(where.hostname), where.port, timeout=PATIENCE)
        self._cookies: dict[str, str] = {}
        self._used_at = time.monotonic()

    def get(self, path: str) -> Page:
        return self._ask("GET", path)

    def post(self, path: str, fields: Mapping[str, str]) -> Page:
        """The fields as a form with `enctype="multipart/form-data"` sends them."""
        mark = secrets.token_hex(16)
        parts = [
            f'--{mark}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
            for name, value in fields.items()
        ]
        body = "".join([*parts, f"--{mark}--\r\n"]).encode()
        return self._ask("POST", path, body, {"Content-Type": f"multipart/form-data; boundary={mark}"})

    def sign_in(self, username: str, password: str) -> None:
        """Through the page, as anybody does."""
        path = "/accounts/login/"
        fields = form_fields(self.get(path).body, "password") | {"login": username, "password": password}
        answer = self.post(path, fields)
        assert answer.status == 302, f"{username} cannot sign in: {answer.status}"

    def _ask(self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None) -> Page:
        if time.monotonic() - self._used_at > IDLE:
            self._line.close()
        given = {"Cookie": "; ".join(f"{name}={value}" for name, value in self._cookies.items())} | dict(headers or {})
        self._line.request(method, path, body, given | {"Origin": self._address})
        answer = self._line.getresponse()
        text = answer.read().decode()
        self._used_at = time.monotonic()
        for line in answer.headers.get_all("Set-Cookie") or ():
            self._cookies |= {name: morsel.value for name, morsel in SimpleCookie(line).items()}
        return Page(answer.status, text, answer.headers.get("Location", ""))


def form_fields(page: str, containing: str) -> dict[str, str]:
    """What a browser would send of the first form that has a field of this name; buttons apart.

    Raises LookupError if there is no such form.
    """
    reader = _Forms()
    reader.feed(page)
    for fields in reader.forms:
        if containing in fields:
            return fields
    raise LookupError(f"no form of the page has a field {containing!r}")


class _Forms(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.forms: list[dict[str, str]] = []
        self._select = ""
        self._area = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.forms.append({})
        if not self.forms:
            return
        fields = self.forms[-1]
        if tag == "input" and found.get("name") and found.get("type") not in ("submit", "file"):
            picks = found.get("type") in ("radio", "checkbox")
            if not picks or "checked" in found:
                fields[found["name"]] = found.get("value", "on" if picks else "")
        elif tag == "select":
            self._select = found.get("name", "")
        elif tag == "option" and self._select and ("selected" in found or self._select not in fields):
            fields[self._select] = found.get("value", "")
        elif tag == "textarea":
            self._area = found.get("name", "")
            fields[self._area] = ""

    def handle_endtag(self, tag: str) -> None:
        if tag == "select":
            self._select = ""
        elif tag == "textarea" and self._area:
            # A text area drops the line break right behind its tag.
            self.forms[-1][self._area] = self.forms[-1][self._area].removeprefix("\n")
            self._area = ""

    def handle_data(self, data: str) -> None:
        if self._area:
            self.forms[-1][self._area] += data
