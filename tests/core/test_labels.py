"""Names of people and teams become label values that Kubernetes takes."""

import re

from hypothesis import example, given
from hypothesis import strategies as st

from portal.core.labels import label_value

VALID = re.compile(r"^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$")


@given(st.text())
@example("_@example.com")
@example("-leading")
@example("trailing.")
@example("研究")
@example("x" * 400)
@example("")
def test_case_55_every_name_gives_a_valid_label_value(name: str) -> None:
    assert VALID.match(label_value(name))


@given(st.text(), st.text())
@example("faculty_name.surname", "faculty-name-surname")
@example("a b", "a-b")
def test_case_55_two_different_names_never_give_the_same_value(one: str, other: str) -> None:
    assert (label_value(one) == label_value(other)) == (one == other)
