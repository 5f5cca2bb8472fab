"""Where a log opens, what is missing in it, and the views of several logs: whole without script."""

import base64
import gzip
import io
import tarfile
from datetime import timedelta
from typing import Any

from portal.core.clock import now
from portal.jobs.models import Pod, State
from portal.logs.models import Cause, Stream
from portal.logs.services import append, note_gap
from portal.logs.specs import Record
from portal.teams.models import Team, User
from tests.factories import Site, make_stream
from tests.logs.stored import damage, sealed_lines, training_lines
from tests.web.job_stories import address, ago, ended, log_of, pod_of, runs, story
from tests.web.pages import as_person, elements, html, words
from tests.web.test_job_page_log import body


def rows(page: object) -> list[str]:
    return [row["id"] for row in elements(page, "div") if row.get("id", "").startswith("L")]


def test_a_failed_log_opens_at_its_first_error(site: Site, team: Team, member: User) -> None:
    """With some lines above it, whatever came behind."""
    job = ended(site, team, member, State.FAILED)
    said = [f"step {n}" for n in range(1, 2001)]
    said[599] = "Traceback (most recent call last):"
    log_of(job, *said, done=True)
    page = as_person(member).get(address(job, "log/"))
    assert 'data-opening="600"' in html(page)
    assert rows(page)[0] == "L540"
    assert "L600" in rows(page)
    assert "Later lines" in words(page)


def test_others_open_at_their_end(site: Site, team: Team, member: User) -> None:
    said = ["Error: once", *(f"step {n}" for n in range(1000))]
    going, good = runs(site, team, member), ended(site, team, member, State.SUCCEEDED)
    calm = ended(site, team, member, State.FAILED)
    log_of(going, *said)
    log_of(good, *said, done=True)
    log_of(calm, *said[1:], done=True)
    for job, last in ((going, "L1001"), (good, "L1001"), (calm, "L1000")):
        page = as_person(member).get(address(job, "log/"))
        assert rows(page)[-1] == last
        assert 'data-opening=""' in html(page)


def test_a_gap_stands_between_the_lines(site: Site, team: Team, member: User) -> None:
    job = runs(site, team, member)
    stream = log_of(job, "one", "two", "three")
    note_gap(stream_id=stream.pk, before_line=3, cause=Cause.ROTATED)
    said = words(as_person(member).get(address(job, "log/")))
    gap = "gap Lines may be missing before line 3: the log was rotated while nobody was reading."
    assert said.index("2 two") < said.index(gap) < said.index("3 three")


def test_the_digest_stands_below_a_sealed_log(site: Site, team: Team, member: User) -> None:
    job = ended(site, team, member, State.SUCCEEDED)
    stream = log_of(job, "one", done=True)
    digest = "91c4" + "0" * 56 + "07fe"
    Stream.objects.filter(pk=stream.pk).update(sha256=digest, sealed_at=now())
    page = as_person(member).get(address(job, "log/"))
    assert "sha256 91c4…07fe" in words(page)
    assert f'title="{digest}"' in html(page)


def test_case_43_an_expired_log_says_when_and_by_which_rule(
    site: Site, team: Team, member: User, settings: Any
) -> None:
    """Never an empty window; and what it was is still said."""
    settings.BEAMTIME_LOG_RETENTION_DAYS = 30
    job = ended(site, team, member, State.SUCCEEDED)
    stream = log_of(job, "one", "two", done=True)
    client = as_person(member)
    assert "by the rule of" in words(client.get(address(job, "log/"))), "when it will expire is said beforehand"
    Stream.objects.filter(pk=stream.pk).update(expired_at=now(), purged_at=now(), sha256="ab" * 32)
    page = client.get(address(job, "log/"))
    assert "Expired on " in words(page)
    assert "2 lines, 8 bytes, sha256 abab" in words(page)
    assert rows(page) == []
    assert client.get(address(job, f"log/{stream.pk}/download/")).status_code == 410


def test_case_43_a_log_of_two_days_ago_reads_as_on_the_first_day(site: Site, team: Team, member: User) -> None:
    job = ended(site, team, member, State.SUCCEEDED, submitted_at=ago(days=3))
    stream = log_of(job, "one", "two", "three", done=True)
    type(job).objects.filter(pk=job.pk).update(ended_at=now() - timedelta(days=2))
    Stream.objects.filter(pk=stream.pk).update(completed_at=now() - timedelta(days=2))
    page = as_person(member).get(address(job, "log/"))
    assert rows(page) == ["L1", "L2", "L3"]
    assert "3 lines, complete" in words(page)


def test_case_11_the_log_outlives_its_pod(site: Site, team: Team, member: User) -> None:
    """The pod is gone from the cluster; the text comes from the store, and the page says so."""
    job = ended(site, team, member, State.SUCCEEDED)
    stream = log_of(job, "one", "two", done=True)
    Pod.objects.filter(attempt__job=job).delete()
    page = as_person(member).get(address(job, "log/"))
    assert rows(page) == ["L1", "L2"]
    assert "8 B in the store" in words(page)
    assert body(as_person(member).get(address(job, f"log/{stream.pk}/download/"))) == b"one\ntwo\n"


def two_logs(site: Site, team: Team, member: User) -> tuple[object, list[Stream]]:
    job = story(site, team, member, State.RUNNING)
    streams = []
    for index in (0, 1):
        pod = pod_of(job, index=index, started_at=ago(minutes=5))
        streams.append(log_of(job, *(f"rank {index} line {n}" for n in range(1, 4)), pod=pod, done=True))
    return job, streams


def test_all_logs_are_merged_by_time(site: Site, team: Team, member: User) -> None:
    job, _streams = two_logs(site, team, member)
    said = words(as_person(member).get(address(job, "log/"), {"view": "merged"}))  # type: ignore[arg-type]
    places = [said.index(f"rank {rank} line {n}") for n in range(1, 4) for rank in (0, 1)]
    assert places == sorted(places)
    assert "0 1 rank 0 line 1 1 1 rank 1 line 1" in said


def test_logs_beside_each_other(site: Site, team: Team, member: User) -> None:
    job, streams = two_logs(site, team, member)
    client = as_person(member)
    page = client.get(address(job, "log/"), {"view": "side", "stream": [str(stream.pk) for stream in streams]})  # type: ignore[arg-type]
    ids = [card["id"] for card in elements(page, "section") if "data-stream" in card]
    assert ids == ["p0-log", "p1-log"]
    assert "rank 0 line 3" in words(page)
    assert "rank 1 line 3" in words(page)
    wrong = client.get(address(job, "log/"), {"view": "side", "stream": "x"})  # type: ignore[arg-type]
    assert wrong.status_code == 404


def test_one_log_has_one_view(site: Site, team: Team, member: User) -> None:
    job = runs(site, team, member)
    log_of(job, "alone")
    for view in ("merged", "side", "x"):
        assert rows(as_person(member).get(address(job, "log/"), {"view": view})) == ["L1"]


def test_one_log_is_read_by_level_without_script(site: Site, team: Team, member: User) -> None:
    """With the others of the job left out, and each line leading to its place in the whole log."""
    job = runs(site, team, member)
    first, second = pod_of(job, index=0, started_at=ago(minutes=5)), pod_of(job, index=1, started_at=ago(minutes=5))
    stream = log_of(job, "fine", "WARN slow", "ValueError: mine", pod=first)
    log_of(job, "ValueError: theirs", pod=second)
    client = as_person(member)
    whole = client.get(address(job, "log/"), {"stream": str(stream.pk)})
    assert {"value": "error"} in elements(whole, "option")
    for level, numbers in (("warning", [2, 3]), ("error", [3])):
        page = client.get(address(job, "log/"), {"view": "level", "stream": str(stream.pk), "level": level})
        links = [link["href"] for link in elements(page, "a") if link.get("class") == "bt-log-num"]
        assert links == [f"?stream={stream.pk}&from={n}" for n in numbers]
        assert "theirs" not in words(page)
        assert {"value": level, "selected": ""} in elements(page, "option")
    none = client.get(address(job, "log/"), {"view": "level", "stream": str(log_of_calm(job).pk), "level": "error"})
    assert "No line is of this kind." in words(none)
    for level in ("all", "loud", ""):
        page = client.get(address(job, "log/"), {"view": "level", "stream": str(stream.pk), "level": level})
        assert rows(page) == ["L1", "L2", "L3"]


def log_of_calm(job: Any) -> Stream:
    return log_of(job, "fine", pod=pod_of(job, index=2, started_at=ago(minutes=5)))


def test_an_expired_log_is_no_empty_one_in_any_view(site: Site, team: Team, member: User) -> None:
    job, streams = two_logs(site, team, member)
    client = as_person(member)
    Stream.objects.filter(pk=streams[0].pk).update(expired_at=now())
    query = {"view": "level", "stream": str(streams[0].pk), "level": "error"}
    assert "Expired on " in words(client.get(address(job, "log/"), query))  # type: ignore[arg-type]
    said = words(client.get(address(job, "log/"), {"view": "merged"}))  # type: ignore[arg-type]
    assert "Expired on " in said
    assert "rank 1 line 3" in said


def test_no_two_merged_logs_have_the_same_tag(site: Site, team: Team, member: User) -> None:
    """Also of a pod that was replaced, and of containers whose names begin alike; each row says whose it is."""
    job = runs(site, team, member)
    streams = [
        make_stream(job, pod_index=0, pod_uid="a", container="main"),
        make_stream(job, pod_index=0, pod_uid="b", container="main"),
        make_stream(job, pod_index=0, pod_uid="b", container="main", restart=1),
        make_stream(job, pod_index=1, pod_uid="c", container="main"),
        make_stream(job, pod_index=1, pod_uid="c", container="data-loader-one"),
        make_stream(job, pod_index=1, pod_uid="c", container="data-loader-two"),
        make_stream(job, pod_index=1, pod_uid="d", container="main", attempt_number=2),
    ]
    for place, stream in enumerate(streams):
        append(stream_id=stream.pk, first_line=1, records=[Record(place + 1, b"line\n")])
    page = as_person(member).get(address(job, "log/"), {"view": "merged"})
    tags = [box["data-tag"] for box in elements(page, "input") if "data-tag" in box]
    assert tags == [
        "0 main try 1", "0 main try 1 pod 2", "0 main try 1 pod 2 restart 1", "1 main try 1",
        "1 data-loader-one try 1", "1 data-loader-two try 1", "1 main try 2",
    ]  # fmt: skip
    assert [row["data-of"] for row in elements(page, "div") if "data-of" in row] == [str(s.pk) for s in streams]


def test_two_lives_of_a_container_are_two_files(site: Site, team: Team, member: User) -> None:
    """By the page and by the API, and as they are called in the archive."""
    job = runs(site, team, member)
    client, names = as_person(member), []
    for restart in (0, 1):
        stream = make_stream(job, pod_name="pod-0", pod_uid="a", restart=restart)
        append(stream_id=stream.pk, first_line=1, records=[Record(1, b"line\n")])
        by_page = client.get(address(job, f"log/{stream.pk}/download/")).headers["Content-Disposition"]
        assert by_page == client.get(f"/api/v1/streams/{stream.pk}/download/").headers["Content-Disposition"]
        names.append(by_page)
    assert names == [f'attachment; filename="pod-0.main{life}.log"' for life in ("", ".restart-1")]


def test_the_compressed_download_is_the_same_bytes(site: Site, team: Team, member: User) -> None:
    job = runs(site, team, member)
    stream = log_of(job, b"one\n", b"\xff\0\r\n", b"no end", done=True)
    answer = as_person(member).get(address(job, f"log/{stream.pk}/download/"), {"form": "gzip"})
    assert gzip.decompress(body(answer)) == b"one\n\xff\0\r\nno end"
    assert answer.headers["Content-Disposition"].endswith('.log.gz"')


def test_the_archive_holds_every_log_and_what_is_known_of_it(site: Site, team: Team, member: User) -> None:
    job, streams = two_logs(site, team, member)
    note_gap(stream_id=streams[1].pk, before_line=2, cause=Cause.SKIPPED, lines=7)
    answer = as_person(member).get(address(job, "log/archive/"))  # type: ignore[arg-type]
    with tarfile.open(fileobj=io.BytesIO(body(answer)), mode="r:gz") as archive:
        files = {member.name.split("/")[-1]: archive.extractfile(member).read() for member in archive}  # type: ignore[union-attr]
    index = files.pop("INDEX.txt").decode()
    assert sorted(files.values()) == [b"".join(b"rank %d line %d\n" % (rank, n) for n in (1, 2, 3)) for rank in (0, 1)]
    assert all(name in index for name in files)
    assert "7 lines are missing before line 2" in index


def test_an_archive_of_no_log_is_an_empty_one(site: Site, team: Team, member: User) -> None:
    job = story(site, team, member, State.STARTING)
    answer = as_person(member).get(address(job, "log/archive/"))
    with tarfile.open(fileobj=io.BytesIO(body(answer)), mode="r:gz") as archive:
        assert [entry.name.split("/")[-1] for entry in archive] == ["INDEX.txt"]


def test_a_page_with_a_damaged_log_says_so_and_who_can_look(site: Site, team: Team, member: User) -> None:
    job = ended(site, team, member, State.FAILED)
    stream = log_of(job, *(f"line {n}" for n in range(100)))
    sealed_lines(stream, [])
    damage(stream)
    client = as_person(member)
    for part in ("", "log/", "log/?view=merged"):
        page = client.get(address(job, part))
        assert page.status_code == 200
        assert "This log's stored copy is damaged" in words(page)
        assert "check_logs" in words(page)
        assert rows(page) == []
    for form in ("", "?form=gzip"):
        answer = client.get(address(job, f"log/{stream.pk}/download/{form}"))
        assert (answer.status_code, answer["Content-Type"]) == (500, "text/plain; charset=utf-8")
        assert "stored copy is damaged" in html(answer)


def test_the_end_of_a_log_is_shown_although_a_part_before_it_is_damaged(site: Site, team: Team, member: User) -> None:
    job = ended(site, team, member, State.FAILED)
    stream = log_of(job, "begin")
    sealed_lines(stream, training_lines(12_000))
    damage(stream)
    page = as_person(member).get(address(job, "log/"))
    assert rows(page)[-1] == "L12001"
    assert "damaged" not in words(page)


def test_a_whole_download_proves_itself(site: Site, team: Team, member: User) -> None:
    job = ended(site, team, member, State.SUCCEEDED)
    stream = log_of(job, "one", "two")
    sealed_lines(stream, [])
    answer = as_person(member).get(address(job, f"log/{stream.pk}/download/"))
    digest = base64.b64encode(bytes.fromhex(stream.sha256)).decode()
    assert (answer["Content-Length"], answer["Repr-Digest"]) == ("8", f"sha-256=:{digest}:")
    assert "no-store" in answer["Cache-Control"]
    assert body(answer) == b"one\ntwo\n"
    packed = as_person(member).get(address(job, f"log/{stream.pk}/download/"), {"form": "gzip"})
    assert not {"Content-Length", "Repr-Digest"} & set(packed.headers)
