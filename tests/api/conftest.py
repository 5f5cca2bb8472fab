"""A program with a token, and the shipped templates."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from portal.catalog.services import install_shipped
from portal.teams import services as teams
from portal.teams.models import User
from tests import factories


class Program:
    """A small HTTP client that speaks JSON and carries one person's token."""

    def __init__(self, user: User | None, scope: str = "write") -> None:
        self.headers: dict[str, str] = {}
        if user is not None:
            _token, text = teams.issue_token(user=user, name="tests", scope=scope, lifetime=timedelta(days=1))
            self.headers["Authorization"] = f"Bearer {text}"
        self.client = Client(headers=self.headers, enforce_csrf_checks=True)

    def get(self, path: str, **headers: str) -> Any:
        return self.client.get(f"/api/v1/{path}", headers={**self.headers, **headers})

    def post(self, path: str, body: object = None, **headers: str) -> Any:
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.client.post(
            f"/api/v1/{path}", body or {}, content_type="application/json", headers={**self.headers, **names}
        )


@pytest.fixture
def templates(site: factories.Site) -> factories.Site:
    install_shipped()
    return site


@pytest.fixture
def program(member: User, templates: factories.Site) -> Program:
    """The member's program."""
    return Program(member)


@pytest.fixture
def submit(program: Program) -> Callable[..., Any]:
    """Submit the `script` template for team vision; `values` and the rest may be overridden."""

    def post(headers: dict[str, str] | None = None, **fields: Any) -> Any:
        body = {"team": "vision", "template": "script", "values": {"script": "echo hello"}, **fields}
        return program.post("jobs/", body, **(headers or {}))

    return post
