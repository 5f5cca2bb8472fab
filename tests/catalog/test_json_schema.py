"""The schema that programs read agrees with the checks that decide."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from portal.catalog.policy import clean, json_schema
from portal.catalog.specs import FlavorChoice, Offer
from portal.core.errors import Refused
from tests.catalog.definitions import OFFER, every_kind, with_parameter

DEFINITION = every_kind()
SCHEMA = json_schema(DEFINITION, OFFER)
VALIDATOR = Draft202012Validator(SCHEMA)
# What JSON Schema cannot say: sizes in bytes, and the range of a duration or of memory written as a text.
BEYOND_SCHEMA = {"too_large", "range"}

TEXT = st.text(max_size=25) | st.sampled_from(["", "a\0b", "x\n", "two words", "ü" * 20, "a" * 21])
ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 2000),
    st.integers(),
    st.floats(),
    TEXT,
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)
FITTING: dict[str, st.SearchStrategy[Any]] = {
    "title": TEXT,
    "script": TEXT.map(lambda text: text + "x"),
    "epochs": st.integers(-1, 1002) | st.just(5.0),
    "rate": st.floats(-0.5, 1.5) | st.integers(0, 2),
    "verbose": st.booleans(),
    "optimizer": st.sampled_from(["adam", "sgd", "Adam"]),
    "image": st.sampled_from(["busybox:1.37", "python:3.12-slim", "busybox:1"]),
    "env": st.dictionaries(st.sampled_from(["A", "B_1", "1C", "CUDA_VISIBLE_DEVICES", "A\n"]), TEXT, max_size=3),
    "token": TEXT,
    "gpu": st.fixed_dictionaries(
        {"count": st.integers(-1, 18) | st.just(2.0)},
        optional={"flavor": st.sampled_from(["", "h100", "l40s", "a100"]), "model": st.just("x")},
    ),
    "memory": st.integers(0, 10**6) | st.sampled_from(["1 GiB", "64Gi", "64 GB", "9 TiB", "5", "0 MiB"]),
    "time_limit": st.integers(-1, 10**6) | st.sampled_from(["2 h", "PT1H", "1 h 2 h", "9 d", "60", "0 s", "soon"]),
    "runs": st.integers(-1, 102),
}
# Most of a form is in order, and a field or two may be anything.
SOUND: dict[str, st.SearchStrategy[Any]] = {
    "title": st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), max_size=20),
    "epochs": st.integers(1, 1000),
    "rate": st.floats(0, 1),
    "verbose": st.booleans(),
    "optimizer": st.sampled_from(["adam", "sgd"]),
    "env": st.dictionaries(st.sampled_from(["A", "B_1"]), st.text(max_size=5).map(lambda text: text.replace("\0", ""))),
    "token": st.just("hunter2"),
    "gpu": st.fixed_dictionaries({"count": st.integers(1, 4), "flavor": st.sampled_from(["", "h100", "l40s"])}),
    "memory": st.integers(4, 1000) | st.sampled_from(["1 GiB", "64Gi"]),
    "time_limit": st.integers(1, 1000) | st.sampled_from(["2 h", "PT1H"]),
    "runs": st.integers(1, 100),
}
KNOWN = sorted(FITTING)


@st.composite
def forms(draw: st.DrawFn) -> dict[str, Any]:
    values: dict[str, Any] = draw(st.fixed_dictionaries({"script": st.just("true")}, optional=SOUND))
    for name in draw(st.lists(st.sampled_from([*KNOWN, "other"]), max_size=2)):
        values[name] = draw(FITTING.get(name, ODD) | ODD if draw(st.booleans()) else FITTING.get(name, ODD))
    return values


PATIENT = settings(max_examples=100, derandomize=True, suppress_health_check=[HealthCheck.too_slow], deadline=None)


def accepted(values: dict[str, Any]) -> tuple[bool, set[str]]:
    try:
        clean(DEFINITION, values, OFFER)
    except Refused as refused:
        return False, {problem.code for problem in refused.problems}
    return True, set()


def test_it_is_a_schema_of_the_dialect_it_names() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"


@PATIENT
@given(forms())
def test_what_the_schema_takes_the_checks_take(values: dict[str, Any]) -> None:
    if VALIDATOR.is_valid(values):
        taken, codes = accepted(values)
        assert taken or codes <= BEYOND_SCHEMA
        if not taken:
            written = {name for name in ("memory", "time_limit") if isinstance(values.get(name), str)}
            assert written


@PATIENT
@given(forms())
def test_what_the_checks_keep_the_schema_takes(values: dict[str, Any]) -> None:
    try:
        filled = clean(DEFINITION, values, OFFER)
    except Refused:
        return
    assert list(VALIDATOR.iter_errors(dict(filled.values))) == []
    assert clean(DEFINITION, filled.values, OFFER).values == filled.values


@PATIENT
@given(st.dictionaries(st.text(max_size=8) | st.sampled_from(list(FITTING)), ODD, max_size=6))
def test_no_values_break_the_checks_and_each_refusal_names_its_field(values: dict[str, Any]) -> None:
    with pytest.raises(Refused) as caught:
        clean(DEFINITION, {**values, "epochs": "many"}, OFFER)
    assert all(problem.field.startswith("values.") and problem.message for problem in caught.value.problems)
    assert "values.epochs" in {problem.field for problem in caught.value.problems}


@PATIENT
@given(forms())
def test_mostly_the_schema_takes_what_the_checks_take(values: dict[str, Any]) -> None:
    # The checks alone read null as missing, and an environment as a form sends it.
    kind = {name for name, value in values.items() if value is None or (name == "env" and not isinstance(value, dict))}
    if accepted(values)[0] and not kind:
        assert list(VALIDATOR.iter_errors(values)) == []


def test_only_what_has_no_default_is_required() -> None:
    assert SCHEMA["required"] == ["script"]
    assert SCHEMA["additionalProperties"] is False


def test_a_program_learns_label_help_default_and_unit() -> None:
    field = SCHEMA["properties"]["rate"]
    assert (field["title"], field["default"], field["minimum"], field["maximum"]) == ("Learning rate", 0.1, 0, 1)
    assert SCHEMA["properties"]["memory"]["x-unit"] == "MiB"


def test_a_secret_is_write_only_and_has_no_default() -> None:
    field = SCHEMA["properties"]["token"]
    assert field["writeOnly"] is True
    assert "default" not in field


@pytest.mark.parametrize(
    ("value", "valid"),
    [
        ({"count": 4, "flavor": "h100"}, True),
        ({"count": 5, "flavor": "h100"}, False),
        ({"count": 8}, True),
        ({"count": 9}, False),
        ({"count": 1, "flavor": "a100"}, False),
    ],
)
def test_the_flavors_of_the_queue_are_in_it(value: dict[str, Any], valid: bool) -> None:
    assert VALIDATOR.is_valid({"script": "true", "gpu": value}) is valid


def test_a_queue_without_gpus_leaves_only_zero() -> None:
    optional = Draft202012Validator(json_schema(with_parameter(kind="gpu", required=False), Offer()))
    assert optional.is_valid({"x": {"count": 0}})
    assert not optional.is_valid({"x": {"count": 1}})
    needed = Draft202012Validator(json_schema(with_parameter(kind="gpu"), Offer()))
    assert not needed.is_valid({"x": {"count": 1}})


def test_without_an_offer_any_flavor_is_open() -> None:
    schema = Draft202012Validator(json_schema(with_parameter(kind="gpu")))
    assert schema.is_valid({"x": {"flavor": "any", "count": 1}})


def test_a_pattern_means_the_whole_text() -> None:
    schema = Draft202012Validator(json_schema(with_parameter(kind="text", pattern="[a-z]+|[0-9]+")))
    assert schema.is_valid({"x": "abc"})
    assert not schema.is_valid({"x": "abc\n"})
    assert not schema.is_valid({"x": "abc1"})


def test_the_most_of_a_flavor_is_no_more_than_the_template_allows() -> None:
    offer = Offer(flavors=(FlavorChoice("h100", "H100", "NVIDIA H100", 64),))
    schema = Draft202012Validator(json_schema(with_parameter(kind="gpu", max=2), offer))
    assert not schema.is_valid({"x": {"flavor": "h100", "count": 3}})
