"""From checked values to what runs: as one argument each, byte for byte, with nothing pasted into anything."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.catalog.policy import clean, parse_definition, render
from portal.clusters.specs import WorkSpec
from tests.catalog.definitions import OFFER, every_kind

WHOLE_TEXT = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), min_size=1, max_size=200)


def work(**values: Any) -> WorkSpec:
    definition = every_kind()
    return render(definition, clean(definition, {"script": "echo hello", **values}, OFFER))


def test_the_values_are_where_the_template_wants_them() -> None:
    spec = work(epochs=3, rate=1e-5, title="run 1", verbose=True, gpu={"flavor": "h100", "count": 2}, runs=4)
    assert spec == WorkSpec(
        image="busybox:1.37",
        command=("/bin/sh", "-c", "echo hello"),
        args=("--epochs=3", "--rate=1e-05", "adam", "--title", "run 1", "-v"),
        env=(("TITLE", "run 1"),),
        cpu_millicores=2000,
        memory_mib=2048,
        gpus=2,
        flavor="h100",
        runs=4,
        time_limit_seconds=3600,
    )


def test_what_is_missing_leaves_no_trace() -> None:
    spec = work()
    assert spec.args == ("--epochs=10", "--rate=0.1", "adam", "-q")
    assert spec.env == ()


def test_an_empty_title_is_passed_on_as_a_variable_and_not_as_an_option() -> None:
    spec = work(title="")
    assert spec.env == (("TITLE", ""),)
    assert "--title" not in spec.args


def test_a_variable_of_the_person_wins_over_the_template() -> None:
    assert dict(work(title="a", env={"TITLE": "b"}).env) == {"TITLE": "b"}


@given(WHOLE_TEXT)
def test_a_text_arrives_byte_for_byte_and_changes_nothing_else(text: str) -> None:
    if not text.strip():
        return
    spec = work(script=text, env={"A": text})
    plain = work(env={"A": "-"})
    assert spec.command == ("/bin/sh", "-c", text)
    assert dict(spec.env) == {"A": text}
    assert spec.args == plain.args


@pytest.mark.parametrize(
    "text", ["{epochs}", "$epochs", '{"from": "epochs"}', "{{ epochs }}", "%(epochs)s", "; rm -rf /"]
)
def test_a_value_that_looks_like_a_template_is_just_a_text(text: str) -> None:
    assert work(title=text[:20]).args[4] == text[:20]


def test_cores_may_be_fractions() -> None:
    definition = parse_definition(
        {
            "parameters": [{"name": "cores", "kind": "number", "min": 0.1, "max": 8}],
            "work": {"image": "busybox", "command": ["true"], "cpu": {"from": "cores"}},
        }
    )
    assert render(definition, clean(definition, {"cores": 0.5}, None)).cpu_millicores == 500
    assert render(definition, clean(definition, {"cores": 2}, None)).cpu_millicores == 2000


def test_a_work_without_holes_is_taken_as_it_is() -> None:
    definition = parse_definition(
        {
            "parameters": [],
            "work": {
                "image": "busybox",
                "command": [{"lines": ["set -e", "true"]}],
                "memory": "4 GiB",
                "gpus": 2,
                "time_limit": "90 min",
            },
        }
    )
    spec = render(definition, clean(definition, {}, None))
    assert spec.command == ("set -e\ntrue\n",)
    assert (spec.memory_mib, spec.gpus, spec.time_limit_seconds, spec.cpu_millicores) == (4096, 2, 5400, 1000)


def test_the_spec_survives_a_trip_through_json() -> None:
    spec = work(title="ü", env={"A": "\n"})
    assert WorkSpec.from_json(spec.to_json()) == spec
