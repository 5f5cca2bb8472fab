"""An administrator who errs in a definition is told everything at once, by path, with the remedy."""

import copy
from typing import Any

import pytest

from portal.catalog.policy import DefinitionInvalid, parse_definition
from portal.catalog.specs import Choice, Kind
from tests.catalog.definitions import EVERY_KIND, every_kind, problems_of

RUN: dict[str, Any] = {"image": "busybox", "command": ["true"]}


def run(**work: Any) -> dict[str, Any]:
    return RUN | work


def faults(definition: object) -> dict[str, str]:
    with pytest.raises(DefinitionInvalid) as caught:
        parse_definition(definition)
    return problems_of(caught.value)


def fault_of_parameter(**parameter: Any) -> dict[str, str]:
    return faults({"parameters": [{"name": "x", **parameter}], "work": run(args=[{"from": "x"}])})


def fault_of_work(**work: Any) -> dict[str, str]:
    parameters = [
        {"name": "script", "kind": "script"},
        {"name": "note", "kind": "text", "required": False},
        {"name": "env", "kind": "env"},
        {"name": "gpu", "kind": "gpu"},
        {"name": "cores", "kind": "number"},
        {"name": "token", "kind": "secret", "variable": "TOKEN"},
    ]
    return faults({"parameters": parameters, "work": run(args=[{"from": "script"}]) | work})


def test_a_definition_becomes_parameters_with_all_that_a_form_needs() -> None:
    definition = every_kind()
    epochs = definition.parameter("epochs")
    assert epochs is not None
    assert (epochs.kind, epochs.label, epochs.default, epochs.min, epochs.max) == (Kind.INTEGER, "Epochs", 10, 1, 1000)
    optimizer = definition.parameter("optimizer")
    assert optimizer is not None
    assert optimizer.choices == (Choice("adam", "adam"), Choice("sgd", "SGD"))
    memory = definition.parameter("memory")
    assert memory is not None
    assert (memory.default, memory.min, memory.max, memory.unit) == (2048, 4, 512 * 1024, "MiB")
    assert definition.gpu is definition.parameter("gpu")
    assert [parameter.name for parameter in definition.secrets] == ["token"]


def test_fields_stand_in_their_sections_and_those_of_none_first() -> None:
    groups = every_kind().by_section()
    assert [section.title for section, _ in groups] == ["", "Program", "Machine"]
    assert [parameter.name for parameter in groups[1][1]] == ["title", "script"]


@pytest.mark.parametrize("data", [None, [], "text", 5])
def test_what_is_no_object_is_refused(data: object) -> None:
    assert "A definition is an object" in faults(data)[""]


def test_an_empty_object_lacks_its_work() -> None:
    assert set(faults({})) == {"work"}


def test_unknown_keys_bring_the_nearest() -> None:
    assert "Did you mean “parameters”?" in faults({"parameter": [], "work": RUN})["parameter"]
    found = fault_of_parameter(kind="integer", mim=3)
    assert "Did you mean “min”?" in found["parameters.0.mim"]
    assert "Did you mean “integer”?" in fault_of_parameter(kind="intger")["parameters.0.kind"]
    assert "Did you mean “script”?" in fault_of_work(args=[{"from": "scrpt"}])["work.args.0.from"]


def test_everything_wrong_is_said_at_once() -> None:
    broken = copy.deepcopy(EVERY_KIND)
    broken["parameters"][2]["min"] = "many"
    broken["parameters"][3]["default"] = 7
    broken["parameters"][6]["choices"] = []
    broken["work"]["command"] = []
    broken["queue"] = "GPU queue"
    found = faults(broken)
    assert {"parameters.2.min", "parameters.3.default", "parameters.6.choices", "work.command", "queue"} <= set(found)


@pytest.mark.parametrize(
    ("parameter", "path"),
    [
        ({"kind": "integer", "min": 5, "max": 1}, "min"),
        ({"kind": "integer", "default": "3"}, "default"),
        ({"kind": "integer", "default": 11, "max": 10}, "default"),
        ({"kind": "duration", "max": "for ever"}, "max"),
        ({"kind": "memory", "min": "1 KB"}, "min"),
        ({"kind": "text", "pattern": "("}, "pattern"),
        ({"kind": "text", "min_length": 5, "max_length": 2}, "min_length"),
        ({"kind": "text", "max_length": 10**9}, "max_length"),
        ({"kind": "choice"}, "choices"),
        ({"kind": "choice", "choices": ["a", "a"]}, "choices.1"),
        ({"kind": "choice", "choices": ["a", 3]}, "choices.1"),
        ({"kind": "choice", "choices": ["a"], "default": "b"}, "default"),
        ({"kind": "gpu", "max": 1000}, "max"),
        ({"kind": "runs", "min": 0}, "min"),
        ({"kind": "boolean", "required": "no"}, "required"),
        ({"kind": "text", "label": 5}, "label"),
        ({"kind": "text", "section": "Nowhere"}, "section"),
        ({"kind": "script", "min": 5}, "min"),
    ],
)
def test_a_parameter_that_cannot_work_is_named(parameter: dict[str, Any], path: str) -> None:
    assert f"parameters.0.{path}" in fault_of_parameter(**parameter)


@pytest.mark.parametrize("name", ["", "A", "1a", "a b", "a-b", "x" * 41, 5, None])
def test_a_name_must_be_one(name: object) -> None:
    assert "parameters.0.name" in faults({"parameters": [{"name": name, "kind": "text"}], "work": RUN})


def test_a_name_is_taken_once() -> None:
    twice = [{"name": "x", "kind": "text"}, {"name": "x", "kind": "integer"}]
    assert "taken" in faults({"parameters": twice, "work": run(args=[{"from": "x"}])})["parameters.1.name"]


@pytest.mark.parametrize("variable", [None, "1A", "NVIDIA_VISIBLE_DEVICES", 5, {"from": 3}, {"join": []}])
def test_a_secret_names_its_variable(variable: object) -> None:
    assert "parameters.0.variable" in fault_of_parameter(kind="secret", variable=variable)


def test_a_secret_has_no_default() -> None:
    assert "everybody" in fault_of_parameter(kind="secret", variable="A", default="hunter2")["parameters.0.default"]


def test_a_secret_cannot_be_written_into_the_work() -> None:
    assert "travels only as its variable" in fault_of_work(args=[{"from": "token"}])["work.args.0.from"]
    assert "work.command.0.join.0.from" in fault_of_work(command=[{"join": [{"from": "token"}]}])


def test_two_secrets_do_not_share_a_variable() -> None:
    secrets = [{"name": name, "kind": "secret", "variable": "TOKEN"} for name in ("a", "b")]
    assert "TOKEN" in faults({"parameters": secrets, "work": RUN})["parameters.1.variable"]


def test_the_name_of_a_variable_comes_from_a_text_that_is_surely_there() -> None:
    secret = {"name": "a", "kind": "secret", "variable": {"from": "name"}}
    for other in ({"kind": "integer", "default": 1}, {"kind": "text", "required": False}):
        found = faults({"parameters": [secret, {"name": "name", **other}], "work": RUN})
        assert "parameters.0.variable" in found


def test_an_argument_that_may_be_missing_stands_inside_its_if() -> None:
    assert "“if”: “note”" in fault_of_work(args=[{"from": "note"}])["work.args.0.from"]
    guarded = {"if": "note", "then": [{"from": "note"}], "else": [{"from": "note"}]}
    assert set(fault_of_work(args=[guarded])) == {"work.args.0.else.0.from"}


@pytest.mark.parametrize(
    ("work", "path"),
    [
        ({"command": "python3 train.py"}, "work.command"),
        ({"command": [5]}, "work.command.0"),
        ({"command": [{"form": "script"}]}, "work.command.0"),
        ({"command": ["x" * 100_001]}, "work.command.0"),
        ({"command": ["a\0"]}, "work.command.0"),
        ({"command": [{"lines": [1]}]}, "work.command.0.lines"),
        ({"image": None}, "work.image"),
        ({"image": {"from": "cores"}}, "work.image.from"),
        ({"cpu": {"from": "script"}}, "work.cpu.from"),
        ({"cpu": {"from": "cores"}}, "work.cpu.from"),
        ({"cpu": 0}, "work.cpu"),
        ({"memory": "lots"}, "work.memory"),
        ({"gpus": -1}, "work.gpus"),
        ({"runs": "two"}, "work.runs"),
        ({"time_limit": {"from": "gpu"}}, "work.time_limit.from"),
        ({"env": {"A": "1"}}, "work.env"),
        ({"env": [{"name": "1A", "value": "x"}]}, "work.env.0.name"),
        ({"env": [{"from": "script"}]}, "work.env.0.from"),
        ({"env": [{"value": "x"}]}, "work.env.0"),
        ({"args": [{"from": "env"}]}, "work.args.0.from"),
        ({"args": [{"if": "nothing", "then": []}]}, "work.args.0.if"),
        ({"args": [{"if": "note"}]}, "work.args.0.then"),
        ({"volumes": []}, "work.volumes"),
    ],
)
def test_work_that_cannot_run_is_named(work: dict[str, Any], path: str) -> None:
    assert path in fault_of_work(**work)


def test_nesting_has_an_end() -> None:
    node: Any = "x"
    for _ in range(50):
        node = {"join": [node]}
    assert any("too deeply" in message for message in fault_of_work(args=[node]).values())


def test_a_parameter_that_nothing_uses_is_refused() -> None:
    found = faults({"parameters": [{"name": "x", "kind": "text"}], "work": RUN})
    assert found["parameters.0"] == "Nothing in “work” uses “x”. Use it there or remove it."


def test_a_template_that_forbids_gpus_asks_for_none() -> None:
    assert "forbids_gpus" in faults({"parameters": [], "forbids_gpus": True, "work": run(gpus=1)})
    gpu = {"name": "gpu", "kind": "gpu"}
    assert "forbids_gpus" in faults({"parameters": [gpu], "forbids_gpus": True, "work": run(gpus={"from": "gpu"})})


def test_too_many_parameters_are_refused() -> None:
    many = [{"name": f"x{n}", "kind": "env"} for n in range(61)]
    assert "60 is the most" in faults({"parameters": many, "work": RUN})["parameters"]
