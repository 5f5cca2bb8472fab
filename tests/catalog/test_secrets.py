"""A secret goes one way: to its environment variable. No value, message or repr ever shows it."""

import json
from typing import Any

import pytest

from portal.catalog.policy import clean, parse_definition, render, to_form
from portal.core.errors import Refused
from tests.catalog.definitions import OFFER, every_kind, problems_of

SECRET = "hf_do-not-show-me"

NAMED: dict[str, Any] = {
    "parameters": [
        {"name": "token", "kind": "secret", "variable": {"from": "token_name"}},
        {"name": "token_name", "kind": "text", "default": "TOKEN"},
        {"name": "key", "kind": "secret", "variable": "API_KEY"},
        {"name": "env", "kind": "env"},
    ],
    "work": {"image": "busybox", "command": ["env"], "env": [{"name": "FIXED", "value": "1"}, {"from": "env"}]},
}


def refusal(**values: Any) -> dict[str, str]:
    with pytest.raises(Refused) as caught:
        clean(parse_definition(NAMED), values, OFFER)
    assert SECRET not in str(caught.value) + repr(caught.value) + repr(caught.value.problems)
    return problems_of(caught.value)


def test_a_secret_travels_apart_under_its_variable() -> None:
    filled = clean(every_kind(), {"script": "true", "token": SECRET}, OFFER)
    assert filled.secrets == {"HF_TOKEN": SECRET}
    assert SECRET not in json.dumps(dict(filled.values)) + repr(filled) + str(filled)


def test_the_work_names_the_variable_and_not_the_value() -> None:
    definition = every_kind()
    work = render(definition, clean(definition, {"script": "true", "token": SECRET}, OFFER))
    assert work.secret_env == ("HF_TOKEN",)
    assert SECRET not in repr(work)


def test_without_a_secret_there_is_no_variable() -> None:
    filled = clean(every_kind(), {"script": "true"}, OFFER)
    assert filled.secrets == {}


def test_the_person_may_name_the_variable() -> None:
    definition = parse_definition(NAMED)
    assert clean(definition, {"token": SECRET}, None).secrets == {"TOKEN": SECRET}
    assert clean(definition, {"token": SECRET, "token_name": "HF_TOKEN"}, None).secrets == {"HF_TOKEN": SECRET}


@pytest.mark.parametrize("name", ["my token", "CUDA_VISIBLE_DEVICES", "FIXED", "API_KEY", "SEED"])
def test_a_name_that_cannot_be_or_is_taken_is_refused_at_the_name(name: str) -> None:
    assert refusal(token=SECRET, key=SECRET, token_name=name, env={"SEED": "1"}).keys() <= {
        "values.token_name",
        "values.key",
    }


@pytest.mark.parametrize("value", [[SECRET], {"a": SECRET}, SECRET + "\0", SECRET + "\ud800", SECRET * 5000, 5])
def test_a_refused_secret_is_not_repeated(value: object) -> None:
    assert "values.key" in refusal(key=value)


def test_all_secrets_together_have_a_limit() -> None:
    assert "32,768 is the most" in refusal(key="x" * 20_000, token="y" * 20_000)["values.key"]


def test_the_form_of_a_rerun_never_holds_a_secret() -> None:
    assert "token" not in to_form(every_kind(), {"token": SECRET, "epochs": 3})
