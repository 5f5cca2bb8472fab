"""What a job may be called."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.clusters.policy import object_name
from portal.core.labels import label_value
from portal.jobs.models import Job
from portal.jobs.policy.names import name_problems
from portal.jobs.services import submit
from tests.jobs.conftest import Ask


@pytest.mark.parametrize(
    "name",
    [
        "llama-ft-7b lr 2e-5", "x", "x" * 63, "x" * 64, "x" * 200, "-leading dash", "50 %: a=b", "Größe µ",
        "日本語の名前", "🚀 launch 👩‍🔬", "نام", "$(rm -rf ~)", "<b onclick=alert(1)>", "..", "a.b_c",
    ],
)  # fmt: skip
def test_case_57_a_name_is_a_text_in_any_language(ask: Ask, name: str) -> None:
    job = submit(ask(name=name)).job
    assert Job.objects.get(pk=job.pk).name == name
    assert job.attempts.get().object_name == f"bt-{job.id.hex}-1", "the name is never part of an object's name"


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a/b", '"/"'),
        ("two\nlines", "a line break"),
        ("two\r\nlines", "a line break"),
        ("with\ttab", "a tab"),
        ("nul\0", "the character U+0000"),
        ("bell\x07", "the character U+0007"),
        ("paragraph\u2029", "a line break"),
        ("turned\u202egnp.exe", "the character U+202E"),
        ("half \ud83d", "the character U+D83D"),
    ],
)
def test_case_57_what_is_not_allowed_is_named_with_the_character(name: str, shown: str) -> None:
    (problem,) = name_problems(name)
    assert problem.field == "name"
    assert problem.message.startswith(f"A name cannot hold {shown}")
    assert "are fine" in problem.message


def test_a_name_that_is_too_long_is_refused_with_both_numbers() -> None:
    (problem,) = name_problems("x" * 300)
    assert "300" in problem.message
    assert "200" in problem.message


@pytest.mark.parametrize("name", ["", "   "])
def test_without_a_name_the_template_gives_it(ask: Ask, name: str) -> None:
    assert submit(ask(name=name)).job.name == "Shell"


@given(st.text(max_size=300))
def test_whatever_is_accepted_can_be_stored_and_shown_in_one_line(name: str) -> None:
    if not name_problems(name):
        name.encode()
        assert len(name.splitlines()) <= 1
        assert "\0" not in name


# --- case 55 ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "user", ["_@example.com", "-a", "a-", ".x.", "@@", "王小明", "faculty_name.surname", "O'Brien"]
)
def test_case_55_every_person_can_be_a_label(user: str) -> None:
    value = label_value(user)
    assert 1 <= len(value) <= 63
    assert (value[0] + value[-1]).isalnum()
    assert value.isascii()


def test_case_21_names_that_a_sanitiser_would_merge_stay_apart() -> None:
    names = ["faculty_name.surname", "faculty-name-surname", "faculty.name.surname", "faculty name surname"]
    assert len({label_value(name) for name in names}) == len(names)


@given(st.text(min_size=1), st.text(min_size=1))
def test_case_55_two_names_never_give_the_same_label(one: str, other: str) -> None:
    try:
        values = label_value(one), label_value(other)
    except UnicodeEncodeError:
        return
    assert (values[0] == values[1]) == (one == other)


@given(st.uuids(), st.integers(1, 10**9))
def test_object_names_are_valid_for_every_job_and_attempt(job: object, attempt: int) -> None:
    name = object_name(job, attempt)  # type: ignore[arg-type]
    assert len(name) < 63
    assert name.replace("-", "").isalnum()
    assert name.islower()
