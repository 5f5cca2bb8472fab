"""The log on the page: whole without script, text only, byte for byte in the download; and the living parts."""

import re
from uuid import uuid4

import pytest
from asgiref.sync import async_to_sync

from portal.jobs.models import Job, State
from portal.logs.models import Cause
from portal.logs.services import note_gap
from portal.teams.models import Team, User
from tests.factories import Site
from tests.web.job_stories import PARTS, TWO_GPUS, address, ago, log_of, pod_of, runs, story
from tests.web.pages import as_person, elements, html, words


def body(page: object) -> bytes:
    """What is streamed, part by part, as a server sends it."""

    async def gathered() -> bytes:
        return b"".join([part async for part in page])  # type: ignore[attr-defined]

    return async_to_sync(gathered)()


def test_the_overview_shows_the_end_of_the_log(site: Site, team: Team, member: User) -> None:
    job = runs(site, team, member)
    log_of(job, *(f"line {n}" for n in range(1, 301)), open_text="train: 55%")
    page = as_person(member).get(address(job))
    rows = [row["id"] for row in elements(page, "div") if row.get("id", "").startswith("L")]
    assert (rows[0], rows[-1], len(rows)) == ("L101", "L300", 200)
    assert "300 lines, complete to here" in words(page)
    assert "301 train: 55%" in words(page)
    assert "Earlier lines" in words(page)


def test_without_script_the_log_is_read_a_page_at_a_time(site: Site, team: Team, member: User) -> None:
    job = runs(site, team, member)
    log_of(job, *(f"line {n}" for n in range(1, 1201)), done=True)
    client, seen = as_person(member), []
    link = f"{address(job, 'log/')}?from=1"
    while link:
        page = client.get(link)
        seen += re.findall(r'id="L(\d+)"', html(page))
        later = re.search(r'href="([^"]*)" data-log-noscript>Later lines', html(page))
        link = later[1].replace("&amp;", "&") if later else ""
    assert seen == [str(n) for n in range(1, 1201)]


def test_markup_in_a_line_is_text(site: Site, team: Team, member: User) -> None:
    """Case 13, without script: plain and inside a colour."""
    evil = "<script>alert(1)</script><img src=x onerror=alert(2)>"
    job = runs(site, team, member)
    log_of(job, evil, f"\x1b[31m{evil}\x1b[0m", open_text=evil)
    page = html(as_person(member).get(address(job)))
    assert "<script>alert" not in page
    assert "<img src=x" not in page
    assert page.count("&lt;script&gt;alert(1)&lt;/script&gt;") == 3


def test_a_nul_and_a_progress_bar_are_shown_as_people_read_them(site: Site, team: Team, member: User) -> None:
    job = runs(site, team, member)
    log_of(job, b"nul\0byte\n", b"1%\r50%\r100%\n", b"\xff\xfe bytes\n")
    said = words(as_person(member).get(address(job)))
    assert "nul␀byte" in said
    assert "100%" in said
    assert "50%" not in said
    assert "�� bytes" in said


def test_the_download_is_byte_for_byte_what_was_written(site: Site, team: Team, member: User) -> None:
    written = [
        b"one\n",
        b"\n",
        b"1%\r2%\r\n",
        b"nul\0\x1b[31m\xff\xfe\n",
        "größe\n".encode(),
        b"x" * 200_000 + b"\n",
        b"no end",
    ]
    job = runs(site, team, member)
    stream = log_of(job, *written, done=True)
    answer = as_person(member).get(address(job, f"log/{stream.pk}/download/"))
    assert body(answer) == b"".join(written)
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Content-Disposition"].startswith("attachment")


def test_a_line_number_that_is_none_shows_the_end(site: Site, team: Team, member: User) -> None:
    job = runs(site, team, member)
    log_of(job, "only line")
    client = as_person(member)
    for wrong in ("", "x", "-1", "1.5", "٣", "9" * 30, "%00"):
        assert 'id="L1"' in html(client.get(address(job, "log/"), {"from": wrong})), wrong
    assert client.get(address(job, "log/"), {"from": "5"}).status_code == 200


def test_a_log_that_is_not_of_this_job_is_missing(site: Site, team: Team, member: User) -> None:
    job, other = runs(site, team, member), runs(site, team, member)
    mine, theirs = log_of(job, "mine"), log_of(other, "theirs")
    client = as_person(member)
    for part in ("", "log/"):
        assert client.get(address(job, part), {"stream": str(mine.pk)}).status_code == 200
        for wrong in (str(theirs.pk), str(uuid4()), "x", "' or 1=1"):
            assert client.get(address(job, part), {"stream": wrong}).status_code == 404


def test_the_log_of_the_run_that_failed_is_shown_first(site: Site, team: Team, member: User) -> None:
    work = type(TWO_GPUS)(image="busybox", command=("true",), runs=2)
    job = story(site, team, member, State.FAILED, work=work, ended_at=ago(minutes=1))
    failed = pod_of(job, index=0, started_at=ago(minutes=9), ended_at=ago(minutes=8), phase="Failed", exit_code=1)
    log_of(job, "this is why", pod=failed, done=True)
    log_of(job, "all well", pod=pod_of(job, index=1, started_at=ago(minutes=9), phase="Succeeded"), done=True)
    client = as_person(member)
    assert "this is why" in words(client.get(address(job)))
    Job.objects.update(state=State.RUNNING)
    page = client.get(address(job))
    assert "all well" in words(page)
    levels = ["all", "warning", "error"]
    assert [option["value"] for option in elements(page, "option")] == [
        *(str(s.pk) for s in job.streams.all()),
        *levels,
    ]


def test_a_log_without_a_line_says_why(site: Site, team: Team, member: User) -> None:
    client = as_person(member)
    starting = story(site, team, member, State.STARTING)
    assert "No line yet. The log begins when the container starts." in words(client.get(address(starting)))
    silent = runs(site, team, member)
    stream = log_of(silent)
    assert "The container has started and has written nothing yet." in words(client.get(address(silent)))
    type(stream).objects.update(completed_at=ago())
    assert "The program wrote nothing." in words(client.get(address(silent)))


def test_trouble_with_a_log_is_said_below_it(site: Site, team: Team, member: User) -> None:
    job = runs(site, team, member)
    stream = log_of(job, "a line", done=True)
    note_gap(stream_id=stream.pk, before_line=2, cause=Cause.DELETED)
    assert "the pod was deleted before its log was read to the end. 1 line, complete" in words(
        as_person(member).get(address(job))
    )


# --- the living parts -------------------------------------------------------------------------------------------------


def fragment(user: User, job: Job, **query: str) -> str:
    return html(as_person(user).get(address(job), query, headers={"HX-Request": "true"}))


def test_the_living_parts_come_without_the_frame_and_without_the_log(site: Site, team: Team, member: User) -> None:
    job = runs(site, team, member)
    stream = log_of(job, "a line of the log")
    answer = fragment(member, job, part="job", stream=str(stream.pk))
    parts = set(re.findall(r'id="([\w-]+)"[^>]* hx-swap-oob="true"', answer))
    assert {"job-badge", "job-actions", "job-tabs", "job-now", "job-live", "job-cost", "job-facts"} <= parts
    assert "<html" not in answer
    assert "a line of the log" not in answer


@pytest.mark.parametrize("part", ["job", "job-log", "job-cost", "job-events", "job-manifest", "nonsense"])
def test_every_part_gets_only_what_it_has_a_place_for(site: Site, team: Team, member: User, part: str) -> None:
    """htmx complains of a piece without a place, so page and fragment are compared."""
    job = runs(site, team, member)
    stream = log_of(job, "a line")
    answer = fragment(member, job, part=part, stream=str(stream.pk))
    path = dict(
        zip(["job", "job-log", "job-cost", "job-events", "job-manifest", "nonsense"], [*PARTS, ""], strict=True)
    )
    page = html(as_person(member).get(address(job, path[part])))
    for name in re.findall(r'id="([\w-]+)"[^>]* hx-swap-oob="true"', answer):
        assert f'id="{name}"' in page, name


def test_what_stands_beside_the_page_moves_with_the_jobs_state(site: Site, team: Team, member: User) -> None:
    job = runs(site, team, member)
    assert 'id="bt-free"' in html(as_person(member).get(address(job)))
    moved = fragment(member, job, state=State.STARTING)
    assert '<div id="bt-free" hx-swap-oob="true">' in moved
    assert "1 running" in moved
    assert "bt-free" not in fragment(member, job, state=State.RUNNING)


def test_the_choice_of_logs_is_sent_only_to_a_page_that_shows_a_log(site: Site, team: Team, member: User) -> None:
    job = runs(site, team, member)
    stream = log_of(job)
    log_of(job, pod=pod_of(job, index=1))
    assert "log-streams" not in fragment(member, job)
    assert "log-streams" in fragment(member, job, stream=str(stream.pk))


def test_case_17_the_living_parts_of_a_foreign_job_are_missing(
    site: Site, team: Team, member: User, outsider: User
) -> None:
    job = runs(site, team, member)
    for part in ("job", "job-log", "job-cost"):
        query = {"part": part}
        foreign = as_person(outsider).get(address(job), query, headers={"HX-Request": "true"})
        missing = as_person(outsider).get(
            address(job).replace(str(job.pk), str(uuid4())), query, headers={"HX-Request": "true"}
        )
        assert (foreign.status_code, html(foreign)) == (404, html(missing))


def test_only_the_sentence_is_announced(site: Site, team: Team, member: User) -> None:
    job = runs(site, team, member)
    log_of(job, "a line")
    page = as_person(member).get(address(job))
    live = [tag for name in ("p", "div", "section", "span") for tag in elements(page, name) if "aria-live" in tag]
    assert [(tag.get("id") or tag.get("role"), tag["aria-live"]) for tag in live] == [
        ("job-said", "polite"), ("log", "off"),
    ]  # fmt: skip
    assert re.search(r'data-said="Running: Running for 1 h [^"]*on h100-03\.', html(page))
