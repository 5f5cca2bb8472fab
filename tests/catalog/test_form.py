"""What a browser sends, where all is text, means the same as what a program sends."""

from collections.abc import Mapping
from typing import Any

import pytest

from portal.catalog.policy import clean, defaults, from_form, to_form
from portal.core.errors import Refused
from tests.catalog.definitions import OFFER, every_kind, problems_of

TYPED = {
    "title": "run 1",
    "script": "echo hello\r\necho world\r\n",
    "epochs": " 5 ",
    "rate": "1e-3",
    "verbose": "on",
    "optimizer": "sgd",
    "image": "python:3.12-slim",
    "env": "A=1\r\nB=x = y",
    "token": "hf_secret",
    "gpu.flavor": "h100",
    "gpu.count": "2",
    "memory": "4 GiB",
    "time_limit": "2 h 30 min",
    "runs": "3",
    "csrfmiddlewaretoken": "x",
}


def sent(**changes: Any) -> dict[str, list[str]]:
    """The form as a browser sends it; None takes a field away."""
    form = {**TYPED, **{key.replace("__", "."): value for key, value in changes.items()}}
    return {name: value if isinstance(value, list) else [value] for name, value in form.items() if value is not None}


def refusal(**changes: Any) -> dict[str, str]:
    with pytest.raises(Refused) as caught:
        clean(every_kind(), from_form(every_kind(), sent(**changes)), OFFER)
    return problems_of(caught.value)


def kept(**changes: Any) -> Mapping[str, Any]:
    return clean(every_kind(), from_form(every_kind(), sent(**changes)), OFFER).values


def test_a_whole_form_is_read() -> None:
    filled = clean(every_kind(), from_form(every_kind(), sent()), OFFER)
    assert filled.values == {
        "title": "run 1",
        "script": "echo hello\necho world\n",
        "epochs": 5,
        "rate": 0.001,
        "verbose": True,
        "optimizer": "sgd",
        "image": "python:3.12-slim",
        "env": {"A": "1", "B": "x = y"},
        "gpu": {"flavor": "h100", "count": 2},
        "memory": 4096,
        "time_limit": 9000,
        "runs": 3,
    }
    assert filled.secrets == {"HF_TOKEN": "hf_secret"}


def test_a_box_that_is_not_ticked_is_a_no() -> None:
    assert kept(verbose=None)["verbose"] is False


def test_an_empty_field_that_may_be_empty_is_missing() -> None:
    values = kept(title="", env="", token="")
    assert "title" not in values
    assert values["env"] == {}


def test_an_emptied_field_that_must_be_filled_is_refused_and_gets_no_default_behind_ones_back() -> None:
    found = refusal(epochs="", time_limit=" ", gpu__count="", script="", runs="")
    assert set(found) == {"values.epochs", "values.time_limit", "values.gpu", "values.script", "values.runs"}
    assert found["values.epochs"] == "It is empty. Fill it in."


@pytest.mark.parametrize("text", ["five", "1,5", "1e400", "9" * 6000, "0x10", "१"])
def test_what_is_no_number_is_refused_with_what_was_typed(text: str) -> None:
    assert set(refusal(epochs=text, rate=text)) == {"values.epochs", "values.rate"}


def test_a_value_with_line_breaks_comes_as_a_pair() -> None:
    values = kept(env="A=1", env__name=["KEY", ""], env__value=["one\r\ntwo\r\n", ""])
    assert values["env"] == {"A": "1", "KEY": "one\ntwo\n"}


def test_a_pair_and_a_line_of_one_name_are_seen() -> None:
    assert "given twice" in refusal(env="A=1", env__name=["A"], env__value=["2"])["values.env"]


def test_the_form_shows_kept_values_and_reads_them_back() -> None:
    values = {**kept(), "env": {"A": "1", "B": " x = y ", "KEY": "one\ntwo", "C": ""}}
    fields = to_form(every_kind(), values)
    assert fields["time_limit"] == "2 h 30 min"
    assert fields["memory"] == "4 GiB"
    assert fields["env"] == "A=1\nB= x = y \nC="
    assert (fields["env.name"], fields["env.value"]) == (["KEY"], ["one\ntwo"])
    again = {
        name: value if isinstance(value, list) else ["on"] if value is True else [value]
        for name, value in fields.items()
        if value is not False
    }
    assert clean(every_kind(), from_form(every_kind(), again), OFFER).values == values


def test_an_untouched_form_means_the_defaults() -> None:
    fields = to_form(every_kind(), defaults(every_kind()))
    form = {name: [value] for name, value in fields.items() if not isinstance(value, bool)} | {"script": ["true"]}
    assert clean(every_kind(), from_form(every_kind(), form), OFFER).values == (
        clean(every_kind(), {"script": "true"}, OFFER).values
    )
