"""The list of a team's jobs."""

import re
from datetime import timedelta
from typing import Any

import pytest

from portal.clusters.specs import WorkSpec
from portal.core.clock import now
from portal.jobs.models import Job, Pod, State
from portal.teams.models import Team, User
from tests.factories import Site, make_job, make_version
from tests.web.pages import as_person, elements, html, queries, words

ADDRESS = "/teams/vision/jobs/"


def shown(page: Any) -> list[str]:
    """Names of the jobs on a page, from the top."""
    rows = [link for link in elements(page, "a") if link.get("class") == "bt-row-link"]
    return [row["title"] for row in rows]


def make_jobs(team: Team, user: User, site: Site, number: int, **fields: Any) -> list[Job]:
    """Jobs a minute apart, the last one the newest."""
    start = now() - timedelta(days=1)
    return [
        make_job(team, user, site.gpu, name=f"job-{n:03d}", submitted_at=start + timedelta(minutes=n), **fields)
        for n in range(number)
    ]


def test_each_job_is_a_line_with_its_reason(site: Site, team: Team, member: User) -> None:
    work = WorkSpec(image="busybox", command=("true",), gpus=2, runs=1)
    reason = "Killed: the container passed its memory limit of 64 GiB. Ask for more memory, or hold less at once."
    make_job(
        team,
        member,
        site.gpu,
        state=State.FAILED,
        name="llama",
        reason=reason,
        work=work,
        gpu_model="NVIDIA H100",
        submitted_at=now() - timedelta(minutes=90),
        started_at=now() - timedelta(minutes=60),
        ended_at=now() - timedelta(minutes=5),
    )
    said = words(as_person(member).get(ADDRESS))
    line = said[said.index("Failed llama") :]
    assert line.startswith(
        "Failed llama Killed: the container passed its memory limit of 64 GiB member 2 × H100 30 min 55 min –"
    )


def test_filters_show_what_they_count(site: Site, team: Team, member: User) -> None:
    for state in (State.RUNNING, State.RUNNING, State.QUEUED, State.REJECTED, State.SUBMITTED):
        make_job(team, member, site.gpu, state=state)
    client = as_person(member)
    for asked, count in (("", 5), ("running", 2), ("queued", 1), ("failed", 0), ("other", 2), ("rejected", 1)):
        page = client.get(ADDRESS, {"state": asked} if asked else {})
        assert len(shown(page)) == count, asked
        filters = html(page)[html(page).index('id="job-filters"') :]
        chosen = re.search(r'aria-current="true">.*?<span class="bt-count">(\d+)</span>', filters, re.S)
        assert chosen is not None
        assert int(chosen[1]) == count, asked


def test_mine_and_the_teams(site: Site, team: Team, member: User, lead: User) -> None:
    make_job(team, member, site.gpu, name="of member")
    make_job(team, lead, site.gpu, name="of lead")
    client = as_person(member)
    assert shown(client.get(ADDRESS, {"mine": "1"})) == ["of member"]
    assert shown(client.get(ADDRESS)) == ["of lead", "of member"]


def test_search_finds_name_person_and_id(site: Site, team: Team, member: User, lead: User) -> None:
    one = make_job(team, member, site.gpu, name="Resnet größer")
    make_job(team, lead, site.gpu, name="other")
    client = as_person(member)
    for text in ("resnet", "größ", "member", str(one.pk), one.pk.hex):
        assert shown(client.get(ADDRESS, {"q": text})) == ["Resnet größer"], text


def test_search_takes_signs_as_they_are(site: Site, team: Team, member: User) -> None:
    make_job(team, member, site.gpu, name="100% of_it")
    make_job(team, member, site.gpu, name="100 of it")
    client = as_person(member)
    assert shown(client.get(ADDRESS, {"q": "100%"})) == ["100% of_it"]
    assert shown(client.get(ADDRESS, {"q": "of_"})) == ["100% of_it"]
    for text in ("'", '"', "\\", "\0", "<", "a" * 5000, "%", "; DROP TABLE jobs"):
        assert client.get(ADDRESS, {"q": text}).status_code == 200, text


def test_by_template(site: Site, team: Team, member: User) -> None:
    make_job(team, member, site.gpu, name="plain one")
    make_job(team, member, site.gpu, name="array one", template_version=make_version("array"))
    client = as_person(member)
    assert shown(client.get(ADDRESS, {"template": "array"})) == ["array one"]
    assert shown(client.get(ADDRESS, {"template": "nonsense"})) == []


def test_pages_by_cursor_neither_repeat_nor_skip(site: Site, team: Team, member: User) -> None:
    make_jobs(team, member, site, 120)
    client = as_person(member)

    def link(page: Any, rel: str) -> str:
        found = [a["href"] for a in elements(page, "a") if a.get("rel") == rel]
        return found[0] if found else ""

    first = client.get(ADDRESS)
    second = client.get(ADDRESS + link(first, "next"))
    # A job that arrives meanwhile moves nothing.
    make_job(team, member, site.gpu, name="brand new")
    third = client.get(ADDRESS + link(second, "next"))
    seen = shown(first) + shown(second) + shown(third)
    assert seen == [f"job-{n:03d}" for n in reversed(range(120))]
    assert link(third, "next") == ""
    assert link(first, "prev") == ""
    assert shown(client.get(ADDRESS + link(third, "prev"))) == shown(second)
    back = client.get(ADDRESS + link(second, "prev"))
    assert shown(back) == shown(first)


def test_jobs_of_one_moment_keep_their_order_over_pages(site: Site, team: Team, member: User) -> None:
    moment = now()
    for number in range(60):
        make_job(team, member, site.gpu, name=f"same {number}", submitted_at=moment)
    client = as_person(member)
    first = client.get(ADDRESS)
    older = next(a["href"] for a in elements(first, "a") if a.get("rel") == "next")
    seen = shown(first) + shown(client.get(ADDRESS + older))
    assert len(seen) == len(set(seen)) == 60


def test_a_cursor_that_is_none_of_ours_is_the_first_page(site: Site, team: Team, member: User) -> None:
    make_job(team, member, site.gpu, name="only one")
    client = as_person(member)
    for cursor in ("x", "o", "o1-2", "n" + "f" * 40 + "-" + "0" * 32, "o-1", "\0", "offff"):
        assert shown(client.get(ADDRESS, {"cursor": cursor})) == ["only one"], cursor


def test_filters_travel_with_the_pages(site: Site, team: Team, member: User) -> None:
    make_jobs(team, member, site, 60, state=State.QUEUED)
    page = as_person(member).get(ADDRESS, {"state": "queued", "q": "job-", "mine": "1"})
    older = next(a["href"] for a in elements(page, "a") if a.get("rel") == "next")
    assert older.startswith("?state=queued&mine=1&q=job-&cursor=")


def test_an_array_is_one_row_with_counts(site: Site, team: Team, member: User) -> None:
    work = WorkSpec(image="busybox", command=("true",), gpus=1, runs=24, parallelism=9)
    job = make_job(team, member, site.gpu, state=State.RUNNING, name="sweep", work=work, started_at=now())
    attempt = job.attempts.get()
    for index in range(21):
        phase = "Succeeded" if index < 12 else "Running"
        Pod.objects.create(attempt=attempt, uid=f"pod-{index}", name=f"p{index}", index=index, phase=phase)
    said = words(as_person(member).get(ADDRESS))
    assert "sweep 24 runs: 12 done, 9 running, 3 waiting" in said
    assert "9 × GPU" in said


def test_an_empty_team_says_what_to_do_next(site: Site, team: Team, member: User, auditor: User) -> None:
    page = as_person(member).get(ADDRESS)
    assert "No jobs in this team yet" in words(page)
    assert "/teams/vision/submit/" in [a.get("href") for a in elements(page, "a") if a.get("class") == "bt-btn"]
    assert "Submit a job</a></div>" not in re.sub(
        r"\s+", " ", html(as_person(auditor).get(ADDRESS)).split("bt-empty")[1]
    )


def test_a_filter_that_finds_nothing_says_what_less_would_find(site: Site, team: Team, member: User) -> None:
    for _ in range(3):
        make_job(team, member, site.gpu, state=State.RUNNING, name="resnet")
    page = as_person(member).get(ADDRESS, {"q": "resnet", "state": "failed"})
    assert "No job matches “resnet” Loosen one of the filters: Any state, 3 jobs Clear filters" in words(page)
    ways = [a["href"] for a in elements(page, "a") if a.get("class") == "bt-btn"]
    assert ways == ["?q=resnet"]


def test_names_are_text(site: Site, team: Team, member: User) -> None:
    for name in ("<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "'; alert(1)//", "{{ 7|add:7 }}"):
        make_job(team, member, site.gpu, name=name, reason=name, submitted_by_name=name)
    page = html(as_person(member).get(ADDRESS))
    assert "<script>alert" not in page
    assert "<img src=x" not in page
    assert "{{ 7|add:7 }}" in page


def test_fresh_rows_come_with_their_counts(site: Site, team: Team, member: User) -> None:
    job = make_job(team, member, site.gpu, state=State.RUNNING, name="mine")
    make_job(team, member, site.gpu, state=State.RUNNING, name="not asked for")
    part = as_person(member).get(f"{ADDRESS}rows/", {"id": [str(job.pk), "nonsense"]})
    assert shown(part) == ["mine"]
    assert f'id="job-{job.pk}"' in html(part)
    assert "Running 2" in words(part)
    assert "<html" not in html(part)


def test_fresh_rows_of_another_team_never_come(site: Site, team: Team, other_team: Team, member: User) -> None:
    foreign = make_job(other_team, member, site.gpu, name="secret plan")
    part = as_person(member).get(f"{ADDRESS}rows/", {"id": str(foreign.pk)})
    assert part.status_code == 200
    assert shown(part) == []


def test_a_script_of_a_job_never_travels_to_the_list(site: Site, team: Team, member: User) -> None:
    make_job(team, member, site.gpu, work=WorkSpec(image="i", command=("/bin/sh", "-c", "a very long script")))
    asked = queries(lambda: as_person(member).get(ADDRESS))
    # Numbers may be taken out of it; the whole may not be read, nor a template's definition with its programs.
    whole = re.compile(r'(?<!\()"(jobs_job"."(work|values)|catalog_templateversion"."definition)"[, ]')
    assert not [sql for sql in asked if whole.search(sql)]


@pytest.mark.parametrize("who", ["member", "lead", "auditor", "admin_user"])
def test_the_number_of_queries_is_the_same_for_one_row_and_for_many(
    who: str, request: pytest.FixtureRequest, site: Site, team: Team, member: User
) -> None:
    client = as_person(request.getfixturevalue(who))
    work = WorkSpec(image="i", command=("true",), runs=3)
    make_job(team, member, site.gpu, state=State.RUNNING, work=work)
    client.get(ADDRESS)  # session and cookie settle
    first = len(queries(lambda: client.get(ADDRESS)))
    for _ in range(20):
        make_job(team, member, site.gpu, state=State.RUNNING, work=work)
    assert len(queries(lambda: client.get(ADDRESS))) == first
    assert first <= 16


def test_new_jobs_are_counted_and_pushed_nowhere(site: Site, team: Team, member: User, lead: User) -> None:
    client = as_person(member)
    make_job(team, member, site.gpu, name="there already", submitted_at=now() - timedelta(minutes=5))
    section = next(s for s in elements(client.get(ADDRESS), "section") if s.get("id") == "jobs")
    for user in (member, lead):
        make_job(team, user, site.gpu, name="new")

    def arrived(**asked: str) -> str:
        part = client.get(f"{ADDRESS}rows/", {"newer": section["data-bt-newest"], **asked})
        return next(p["data-count"] for p in elements(part, "p") if p.get("id") == "arrived")

    assert arrived() == "2"
    assert arrived(mine="1") == "1"
    assert arrived(state="failed") == "0"
    assert arrived(newer="nonsense") == "0"
    assert arrived(newer="2026-13-99T00:00") == "0"


def test_only_the_first_page_waits_for_new_jobs(site: Site, team: Team, member: User) -> None:
    make_jobs(team, member, site, 60)
    client = as_person(member)
    first = client.get(ADDRESS)
    older = next(a["href"] for a in elements(first, "a") if a.get("rel") == "next")
    assert 'data-bt-newest="' in html(first)
    assert "data-bt-newest" not in html(client.get(ADDRESS + older))
