"""The OpenAPI document: valid, complete, and open to everyone."""

import json

from django.urls import get_resolver
from openapi_spec_validator import OpenAPIV31SpecValidator

from tests.api.conftest import Program


def document() -> dict[str, object]:
    answer = Program(None).get("schema/?format=json")
    assert answer.status_code == 200
    found: dict[str, object] = json.loads(answer.content)
    return found


def test_it_is_valid_openapi_3_1(db: None) -> None:
    found = document()
    assert str(found["openapi"]).startswith("3.1")
    OpenAPIV31SpecValidator(found).validate()  # type: ignore[arg-type]


def test_it_names_every_address(db: None) -> None:
    from portal.api.urls import urlpatterns  # noqa: F401  (the resolver below has them)

    resolver = next(entry for entry in get_resolver().url_patterns if getattr(entry, "app_name", "") == "api")
    names = [p.name for p in resolver.url_patterns if p.name not in {"schema", "docs", "no-such-address"}]
    paths = document()["paths"]
    assert isinstance(paths, dict)
    assert len(paths) == len(names)
