"""Reading pages as people do: by what they say, and by the fields of their forms.

A response is `Any` here: what a test client answers is a type of its own that nobody else needs to know.
"""

from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from portal.teams.models import User


def as_person(user: User) -> Client:
    """A browser of somebody who is signed in."""
    client = Client()
    client.force_login(user)
    return client


def html(response: Any) -> str:
    return str(response.content.decode())


def words(response: Any) -> str:
    """The text of a page with single spaces, without what only scripts and styles read."""
    reader = _Words()
    reader.feed(html(response))
    return " ".join(" ".join(reader.parts).split())


class _Words(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self._skip = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._skip += tag in ("script", "style")

    def handle_endtag(self, tag: str) -> None:
        self._skip -= tag in ("script", "style")

    def handle_data(self, data: str) -> None:
        if not self._skip:
            self.parts.append(data)


def fields(response: Any, form_id: str) -> dict[str, str]:
    """What a browser would send of a form, name by name; buttons apart."""
    reader = _Fields(form_id)
    reader.feed(html(response))
    return reader.values


class _Fields(HTMLParser):
    def __init__(self, form_id: str) -> None:
        super().__init__()
        self.values: dict[str, str] = {}
        self._form_id = form_id
        self._inside = False
        self._select = ""
        self._area = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._inside = found.get("id") == self._form_id
        if not self._inside:
            return
        if tag == "input" and "name" in found and found.get("type") != "submit":
            picks = found.get("type") in ("radio", "checkbox")
            if not picks or "checked" in found:
                self.values[found["name"]] = found.get("value", "on" if picks else "")
        elif tag == "select":
            self._select = found.get("name", "")
        elif tag == "option" and self._select and ("selected" in found or self._select not in self.values):
            self.values[self._select] = found.get("value", "")
        elif tag == "textarea":
            self._area = found.get("name", "")
            self.values[self._area] = ""

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._inside = False
        elif tag == "select":
            self._select = ""
        elif tag == "textarea" and self._area:
            # A text area drops the line break right behind its tag.
            self.values[self._area] = self.values[self._area].removeprefix("\n")
            self._area = ""

    def handle_data(self, data: str) -> None:
        if self._area:
            self.values[self._area] += data


def elements(response: Any, tag: str) -> list[dict[str, str]]:
    """Every element of a kind, as its attributes."""
    reader = _Elements(tag)
    reader.feed(html(response))
    return reader.found


class _Elements(HTMLParser):
    def __init__(self, tag: str) -> None:
        super().__init__()
        self.tag = tag
        self.found: list[dict[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == self.tag:
            self.found.append({name: value or "" for name, value in attrs})


def queries(look: Callable[[], object]) -> list[str]:
    """The SQL of every question that a look at a page asks the database."""
    with CaptureQueriesContext(connection) as captured:
        look()
    return [query["sql"] for query in captured.captured_queries]
