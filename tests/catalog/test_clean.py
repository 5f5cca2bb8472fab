"""What a person or a program fills in is taken as meant, or refused with the field and the remedy."""

import json
from typing import Any

import pytest

from portal.catalog.policy import clean, defaults, parse_definition, wants_gpus
from portal.catalog.specs import Filled, FlavorChoice, Offer
from portal.core.errors import Refused
from tests.catalog.definitions import OFFER, every_kind, problem_of, problems_of, with_parameter


def filled(**values: Any) -> Filled:
    return clean(every_kind(), {"script": "echo hello", **values}, OFFER)


def refusal(**values: Any) -> dict[str, str]:
    with pytest.raises(Refused) as caught:
        filled(**values)
    return problems_of(caught.value)


def refused_value(kind: str, value: object, **keys: Any) -> str:
    """The message for one value of one parameter."""
    with pytest.raises(Refused) as caught:
        clean(with_parameter(kind=kind, **keys), {"x": value}, OFFER)
    problem = problem_of(caught.value)
    assert problem.field == "values.x"
    return problem.message


# --- what is taken -----------------------------------------------------------------------------------------------


def test_only_what_has_no_default_must_be_given() -> None:
    assert filled().values == {
        "script": "echo hello",
        "epochs": 10,
        "rate": 0.1,
        "verbose": False,
        "optimizer": "adam",
        "image": "busybox:1.37",
        "gpu": {"flavor": "", "count": 1},
        "memory": 2048,
        "time_limit": 3600,
        "runs": 1,
    }


def test_defaults_are_what_an_untouched_form_holds() -> None:
    values = defaults(every_kind())
    assert "script" not in values
    assert filled(**values).values == filled().values


def test_null_means_missing() -> None:
    assert filled(epochs=None, title=None).values == filled().values


def test_an_empty_text_is_not_missing() -> None:
    assert filled(title="").values["title"] == ""
    assert "title" not in filled().values


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("2 h 30 min", 9000),
        ("90 min", 5400),
        ("PT1H30M", 5400),
        ("P1DT2H", 93_600),
        (5400, 5400),
        ("5400", 5400),
        ("1.5 h", 5400),
    ],
)
def test_a_time_limit_may_be_written_in_many_ways(written: object, seconds: int) -> None:
    assert filled(time_limit=written).values["time_limit"] == seconds


@pytest.mark.parametrize(
    ("written", "mib"),
    [("64 GiB", 65_536), ("512MiB", 512), ("64Gi", 65_536), ("1.5 GiB", 1536), (777, 777), ("777", 777)],
)
def test_memory_may_be_written_in_many_ways(written: object, mib: int) -> None:
    assert filled(memory=written).values["memory"] == mib


def test_whole_numbers_may_come_as_json_writes_them() -> None:
    assert repr(filled(epochs=5.0).values["epochs"]) == "5"


def test_environment_values_are_kept_to_the_byte() -> None:
    env = {"A": " a=b ", "B": "\"'$HOME\\\t\r\n", "C": "", "D_1": "ü😀", "_E": "${A}"}
    assert filled(env=env).values["env"] == env


def test_environment_may_come_as_lines() -> None:
    assert filled(env="A=1\n\nB=x=y z\nC=").values["env"] == {"A": "1", "B": "x=y z", "C": ""}


def test_zero_gpus_name_no_flavor() -> None:
    definition = with_parameter(kind="gpu", required=False)
    assert clean(definition, {"x": {"flavor": "h100", "count": 0}}, OFFER).values == {"x": {"flavor": "", "count": 0}}


def test_a_preview_without_an_offer_leaves_flavors_open() -> None:
    value = {"flavor": "b200", "count": 2}
    assert clean(with_parameter(kind="gpu"), {"x": value}, None).values == {"x": value}


def test_checking_what_was_checked_changes_nothing() -> None:
    once = filled(time_limit="2 h", memory="1 GiB", env="A=1", title="run 1")
    assert filled(**once.values).values == once.values


# --- what is refused ---------------------------------------------------------------------------------------------


def test_every_problem_is_said_at_once() -> None:
    found = refusal(epochs=0, rate="fast", image="evil:1", memory="64 GB", gpu={"flavor": "a100", "count": 1}, epoch=3)
    assert set(found) == {f"values.{name}" for name in ("epochs", "rate", "image", "memory", "gpu", "epoch")}


def test_a_missing_value_is_named() -> None:
    with pytest.raises(Refused) as caught:
        clean(every_kind(), {}, OFFER)
    problem = problem_of(caught.value)
    assert (problem.field, problem.code, problem.message) == (
        "values.script",
        "required",
        "Script is missing. Fill it in.",
    )


def test_an_unknown_parameter_brings_the_nearest_name() -> None:
    assert refusal(epoch=3)["values.epoch"] == "This template has no parameter “epoch”. Did you mean “epochs”?"
    assert "There are: title, script, epochs" in refusal(zzz=1)["values.zzz"]


def test_out_of_range_names_both_numbers() -> None:
    assert refusal(epochs=0)["values.epochs"] == "It is 0; it must be from 1 to 1,000."
    assert refusal(epochs=5000)["values.epochs"] == "It is 5,000; it must be from 1 to 1,000."
    assert refusal(time_limit="8 d")["values.time_limit"] == "It is 8 d; it must be from 1 s to 7 d."
    assert refusal(memory="1 TiB")["values.memory"] == "It is 1024 GiB; it must be from 4 MiB to 512 GiB."
    assert refusal(runs=0)["values.runs"] == "It is 0; it must be from 1 to 100."


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("integer", True),
        ("integer", "5"),
        ("integer", 5.5),
        ("integer", [5]),
        ("number", False),
        ("number", "0.1"),
        ("number", {}),
        ("boolean", 1),
        ("boolean", "yes"),
        ("text", 5),
        ("text", ["a"]),
        ("script", {}),
        ("duration", True),
        ("duration", "soon"),
        ("duration", "90 min 2 h"),
        ("duration", "-5 min"),
        ("duration", 1.5),
        ("memory", "64 GB"),
        ("memory", "much"),
        ("memory", False),
        ("gpu", 2),
        ("gpu", {"flavor": 1, "count": 1}),
        ("gpu", {"flavor": "h100", "count": True}),
        ("gpu", {"flavor": "h100", "count": "2"}),
        ("gpu", {"flavor": "h100", "count": 1, "model": "x"}),
        ("env", 5),
        ("env", {"A": 1}),
        ("env", {"A": None}),
        ("secret", 5),
        ("runs", True),
    ],
)
def test_a_value_of_the_wrong_type_is_refused(kind: str, value: object) -> None:
    assert "must be" in refused_value(kind, value) or "knows" in refused_value(kind, value)


@pytest.mark.parametrize("text", ["1e400", "-1e400", "NaN", "Infinity"])
def test_numbers_that_are_none_are_refused(text: str) -> None:
    value = json.loads(text)
    assert "finite" in refused_value("number", value)
    for kind in ("integer", "duration", "memory", "runs"):
        assert refused_value(kind, value)


@pytest.mark.parametrize("kind", ["integer", "number", "duration", "memory", "runs"])
def test_huge_numbers_are_refused_without_being_printed(kind: str) -> None:
    assert len(refused_value(kind, 10**5000)) < 200


def test_more_gpus_than_the_queue_can_give_names_both_numbers() -> None:
    assert refusal(gpu={"flavor": "h100", "count": 6})["values.gpu"] == (
        "It asks 6 GPUs; this queue can give 4 at most. Take 4 or fewer."
    )
    assert "8 at most" in refusal(gpu={"flavor": "", "count": 9})["values.gpu"]


def test_a_flavor_that_the_queue_lacks_is_refused_with_those_it_has() -> None:
    assert refusal(gpu={"flavor": "a100", "count": 1})["values.gpu"] == (
        "This queue does not have the flavor “a100”. It has h100 (NVIDIA H100 (pretended)), l40s (NVIDIA L40S)."
    )


def test_gpus_without_a_number_are_refused() -> None:
    for value in ({}, {"flavor": "h100"}, {"count": ""}):
        assert refusal(gpu=value)["values.gpu"] == "Say how many GPUs."


def test_a_queue_without_gpus_gives_none() -> None:
    with pytest.raises(Refused) as caught:
        clean(every_kind(), {"script": "true"}, Offer())
    assert problem_of(caught.value).message == "This queue has no GPUs. Take a queue that has, or ask for 0."


def test_an_image_off_the_list_is_refused_with_the_list() -> None:
    assert refusal(image="evil:latest")["values.image"] == (
        "The image “evil:latest” is not allowed. Allowed are: busybox:1.37, python:3.12-slim."
    )


def test_a_choice_off_the_list_brings_the_nearest() -> None:
    assert refusal(optimizer="Adam")["values.optimizer"] == ("“Adam” is not one of adam, sgd. Did you mean “adam”?")


@pytest.mark.parametrize(
    ("kind", "value"), [("text", "a\0b"), ("script", "echo \0"), ("env", {"A": "\0"}), ("secret", "\0")]
)
def test_a_nul_character_is_refused(kind: str, value: object) -> None:
    assert "NUL" in refused_value(kind, value)


@pytest.mark.parametrize(("kind", "value"), [("text", "\ud800"), ("script", "echo \udc00"), ("env", {"A": "\ud800"})])
def test_half_a_surrogate_pair_is_refused(kind: str, value: object) -> None:
    assert "Unicode" in refused_value(kind, value)


def test_a_script_of_two_megabytes_is_refused_with_its_size_and_the_limit() -> None:
    message = refusal(script="x" * 2_000_000)["values.script"]
    assert "2,000,000 bytes" in message
    assert "100,000 is the most" in message


def test_a_script_of_exactly_the_limit_is_taken_and_bytes_count_not_characters() -> None:
    assert filled(script="x" * 100_000)
    assert "100,002 bytes" in refusal(script="ü" * 50_001)["values.script"]


@pytest.mark.parametrize("script", ["", "  \n\t"])
def test_an_empty_script_is_refused(script: str) -> None:
    assert refusal(script=script)["values.script"] == "It is empty. Write at least one command."


@pytest.mark.parametrize("name", ["1A", "A-B", "A B", "", "Ä", "A\n", "A=B", "a.b"])
def test_a_variable_needs_a_name_that_a_shell_can_read(name: str) -> None:
    assert "cannot be the name of a variable" in refused_value("env", {name: "1"})


def test_variables_that_beamtime_sets_are_refused() -> None:
    assert "NVIDIA_VISIBLE_DEVICES is set by Beamtime" in refused_value("env", {"NVIDIA_VISIBLE_DEVICES": "all"})


def test_a_line_without_an_equals_sign_is_named() -> None:
    assert refused_value("env", "A=1\nEDITOR") == "Line 2 has no “=”: the text “EDITOR”. Write NAME=value."


def test_a_variable_given_twice_is_named() -> None:
    assert refused_value("env", "A=1\nA=2") == "A is given twice. Keep one of them."


def test_too_much_environment_is_refused_with_both_sizes() -> None:
    message = refused_value("env", {f"V{number}": "x" * 1000 for number in range(70)})
    assert "65,536 is the most" in message


def test_parts_that_fit_may_be_too_large_together() -> None:
    name = [{"name": f"p{n}", "kind": "text", "max_length": 100_000, "default": "-"} for n in range(2)]
    work = {"image": "busybox", "command": [{"join": [{"from": "p0"}, {"from": "p1"}]}]}
    with pytest.raises(Refused) as caught:
        clean(parse_definition({"parameters": name, "work": work}), {"p0": "x" * 70_000, "p1": "x" * 70_000}, None)
    assert problem_of(caught.value).field == "values"
    assert "140,000 bytes" in problem_of(caught.value).message


def test_lengths_and_patterns_are_said() -> None:
    assert refused_value("text", "x" * 11, max_length=10) == "It has 11 characters; 10 is the most."
    assert refused_value("text", "x", min_length=3) == "It has 1 characters; 3 is the least."
    assert refused_value("text", "a b", pattern="[a-z]+", pattern_help="Only small letters.") == "Only small letters."
    assert "does not match" in refused_value("text", "abc\n", pattern="[a-z]+")


def test_a_required_text_may_not_be_empty_unless_the_template_says_so() -> None:
    assert refused_value("text", "") == "It is empty. Fill it in."
    assert clean(with_parameter(kind="text", min_length=0), {"x": ""}, None).values == {"x": ""}


@pytest.mark.parametrize("values", [[], "script", 5, None])
def test_values_must_be_an_object(values: Any) -> None:
    with pytest.raises(Refused) as caught:
        clean(every_kind(), values, OFFER)
    assert problem_of(caught.value).field == "values"


def test_whether_gpus_are_wanted_is_known_before_the_check() -> None:
    definition = every_kind()
    assert wants_gpus(definition, {})
    assert not wants_gpus(definition, {"gpu": {"flavor": "", "count": 0}})
    # What cannot be read is refused at its own field, so no queue is held against it before.
    assert wants_gpus(definition, {"gpu": "many"})
    assert wants_gpus(definition, {"gpu": {"flavor": "", "count": "x"}})
    assert wants_gpus(definition, {"gpu": {"flavor": "", "count": -1}})
    assert not wants_gpus(with_parameter(kind="text"), {})


@pytest.mark.parametrize(
    "value", ["a.b_c", "a-b-c", "it's", 'say "x"', "#1", "two words", "über", "a&b<c>", "{x}", "%(x)s"]
)
def test_case_21_choices_of_any_spelling_are_told_apart(value: str) -> None:
    definition = with_parameter(kind="choice", choices=[value, "a_b.c", "other"])
    assert clean(definition, {"x": value}, None).values == {"x": value}
    with pytest.raises(Refused) as caught:
        clean(definition, {"x": value + " "}, None)
    assert problem_of(caught.value).code == "choice"


def test_case_21_a_pair_that_the_page_should_not_have_offered_is_refused() -> None:
    elsewhere = Offer(flavors=(FlavorChoice("a.100_40'gb", "A100", "NVIDIA A100", 4),))
    definition = with_parameter(kind="gpu")
    pair = {"x": {"flavor": "a.100_40'gb", "count": 1}}
    assert clean(definition, pair, elsewhere).values == pair
    with pytest.raises(Refused) as caught:
        clean(definition, pair, OFFER)
    assert "does not have the flavor “a.100_40'gb”" in problem_of(caught.value).message
