"""The OpenAPI document: valid, complete, and open to everyone."""

import json
from typing import Any

from openapi_spec_validator import OpenAPIV31SpecValidator

from portal.api.urls import urlpatterns
from tests.api.conftest import Program

_NOT_DESCRIBED = {"schema", "docs", "no-such-address"}


def document() -> dict[str, Any]:
    answer = Program(None).get("schema/?format=json")
    assert answer.status_code == 200
    found: dict[str, Any] = json.loads(answer.content)
    return found


def test_it_is_valid_openapi_3_1(db: None) -> None:
    found = document()
    assert found["openapi"].startswith("3.1")
    OpenAPIV31SpecValidator(found).validate()


def test_it_describes_every_address(db: None) -> None:
    described = [pattern for pattern in urlpatterns if pattern.name not in _NOT_DESCRIBED]
    assert len(document()["paths"]) == len(described)


def test_the_docs_can_be_opened_under_the_strict_policy(db: None) -> None:
    answer = Program(None).client.get("/api/v1/docs/")
    assert answer.status_code == 200
    assert b"<script>" not in answer.content
    assert "unsafe-inline" not in answer["Content-Security-Policy"]
