"""A collector on a node delivers the files of containers, again and in any order; the log has each line once."""

import base64
import gzip
import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from threading import Event, Semaphore
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client
from redis import RedisError

from portal.clusters.policy import attempt_of_pod
from portal.core import leases
from portal.core.clock import now
from portal.ingest import views
from portal.jobs.models import Attempt, State
from portal.logs import figures, selectors, services
from portal.logs.models import Cause, Parcel, Source, Stream
from portal.logs.services import ingest, waiting
from portal.logs.specs import Loss, Record
from portal.teams.models import Team, User
from tests import factories
from tests.support.metrics import counted

TOKEN = "a token of the collectors"
NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _token(settings: Any) -> None:
    settings.BEAMTIME_INGEST_TOKENS = ["an older one", TOKEN]


@pytest.fixture
def attempt(team: Team, member: User, site: factories.Site) -> Attempt:
    job = factories.make_job(team, member, site.cpu, state=State.RUNNING)
    return Attempt.objects.get(job=job)


class File:
    """A container's log file on the node, as the runtime writes it."""

    def __init__(self, attempt: Attempt, *, name: str = "0.log", starts: datetime = NOON) -> None:
        pod = f"{attempt.object_name}-abcde"
        self.path = f"/var/log/pods/{attempt.namespace}_{pod}_uid-of-the-pod/main/{name}"
        self.clock = starts
        self.offset = 0
        self.records: list[dict[str, Any]] = []

    def write(self, *texts: str | bytes, tag: str = "F", pipe: str = "stdout") -> list[dict[str, Any]]:
        """The records of these lines, as a collector sends them."""
        fresh = []
        for text in texts:
            self.clock += timedelta(microseconds=1)
            head = f"{self.clock:%Y-%m-%dT%H:%M:%S.%f}000Z {pipe} {tag} "
            line = head.encode() + (text if isinstance(text, bytes) else text.encode())
            fresh.append(
                {
                    "body": {"bytesValue": base64.b64encode(line).decode()},
                    "attributes": [
                        {"key": "log.file.path", "value": {"stringValue": self.path}},
                        {"key": "log.file.record_offset", "value": {"intValue": str(self.offset)}},
                    ],
                }
            )
            self.offset += len(line) + 1
        self.records += fresh
        return fresh


def deliver(
    client: Client, records: Sequence[dict[str, Any]], *, token: str = TOKEN, zipped: bool = True, start: str = ""
) -> Any:
    """`start`: which process of the collector it is."""
    body = json.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": list(records)}]}]}).encode()
    headers = {"Authorization": f"Bearer {token}", "X-Beamtime-Start": start}
    headers |= {"Content-Encoding": "gzip"} if zipped else {}
    return client.post(
        "/ingest/v1/logs",
        gzip.compress(body) if zipped else body,
        content_type="application/json",
        headers=headers,
    )


def number() -> None:
    """As if everything had waited long enough."""
    for stream in Stream.objects.all():
        while Parcel.objects.filter(stream=stream).exists():
            ingest.number(stream_id=stream.pk, hurry=True)


def text() -> bytes:
    return b"".join(b"".join(selectors.content(stream)) for stream in Stream.objects.all())


def test_a_delivery_becomes_the_lines_of_its_container(client: Client, attempt: Attempt) -> None:
    file = File(attempt)
    assert deliver(client, file.write("one", b"two \xff\x00")).json() == {"partialSuccess": {}}
    number()
    stream = Stream.objects.get()
    assert (stream.job_id, stream.attempt_number, stream.source) == (attempt.job_id, attempt.number, Source.COLLECTOR)
    assert text() == b"one\ntwo \xff\x00\n"
    page = selectors.lines(stream, 1, 10)
    assert page.lines[0].time_ns == (int(NOON.timestamp()) * 1_000_000 + 1) * 1000


def test_bytes_travel_as_letters_of_a_byte_each(client: Client, attempt: Attempt) -> None:
    file = File(attempt)
    records = file.write(b" \xff\x00\xc3\xbc\x80\r ")
    for record in records:
        raw = base64.b64decode(record["body"]["bytesValue"])
        record["body"] = {"stringValue": raw.decode("iso-8859-1")}
        record["attributes"].append({"key": "beamtime.bytes", "value": {"stringValue": "iso-8859-1"}})
    deliver(client, records)
    number()
    assert text() == b" \xff\x00\xc3\xbc\x80\r \n"


def test_a_delivery_that_comes_again_changes_nothing(client: Client, attempt: Attempt) -> None:
    file = File(attempt)
    first, second = file.write("one", "two"), file.write("three")
    for records in (first, first, [*first, *second], second, first):
        deliver(client, records)
        number()
    assert text() == b"one\ntwo\nthree\n"


def test_what_follows_byte_by_byte_is_numbered_at_once_and_the_rest_waits(client: Client, attempt: Attempt) -> None:
    old = File(attempt)
    deliver(client, old.write("one"))
    number()
    late = old.write("two", "three")
    new = File(attempt, starts=NOON + timedelta(minutes=1))
    deliver(client, new.write("four"))
    stream = Stream.objects.get()
    # Another file has begun, and the end of the first one may be under way.
    assert ingest.number(stream_id=stream.pk) == 0
    old.path = old.path.replace("0.log", "0.log.20261130-120000")
    deliver(client, late)
    assert ingest.number(stream_id=stream.pk) == 2
    number()
    assert text() == b"one\ntwo\nthree\nfour\n"
    assert selectors.gaps_of(stream) == []


def read_after(records: list[dict[str, Any]], seconds: float) -> list[dict[str, Any]]:
    """The same as a collector sends them that reads them so much later."""
    moment = datetime.now(UTC) + timedelta(seconds=seconds)
    return [each | {"observedTimeUnixNano": str(int(moment.timestamp()) * 1_000_000_000)} for each in records]


def test_what_a_killed_collector_had_under_way_comes_behind_the_rest_and_is_no_gap(
    client: Client, attempt: Attempt
) -> None:
    file = File(attempt)
    deliver(client, file.write("one"), start="first")
    number()
    under_way, later = file.write("two", "three"), file.write("four")
    # Started again: what was under way is sent last, however long that takes.
    deliver(client, read_after(later, 0), start="second")
    stream = Stream.objects.get()
    assert ingest.number(stream_id=stream.pk) == 0
    deliver(client, read_after(under_way, 0), start="second")
    deliver(client, read_after(file.write("five"), 5), start="second")
    assert ingest.number(stream_id=stream.pk) == 4
    assert (text(), selectors.gaps_of(stream)) == (b"one\ntwo\nthree\nfour\nfive\n", [])


def test_a_new_file_begins_when_something_is_here_that_was_read_later_by_who_sends_it(
    client: Client, attempt: Attempt
) -> None:
    old = File(attempt)
    deliver(client, old.write("one"), start="first")
    number()
    rest = old.write("two")
    new = File(attempt, starts=NOON + timedelta(minutes=1))
    deliver(client, read_after(new.write("three"), 0), start="first")
    # Of its predecessor, it may have been read before what was under way then.
    deliver(client, read_after(new.write("four"), 1), start="second")
    stream = Stream.objects.get()
    assert ingest.number(stream_id=stream.pk) == 0
    deliver(client, read_after(rest, 0), start="second")
    deliver(client, read_after(new.write("five"), 5), start="second")
    assert ingest.number(stream_id=stream.pk) == 4
    assert text() == b"one\ntwo\nthree\nfour\nfive\n"


def test_bytes_are_missing_once_something_is_here_that_was_read_later(client: Client, attempt: Attempt) -> None:
    file = File(attempt)
    deliver(client, file.write("one"), start="first")
    number()
    file.write("two")
    deliver(client, read_after(file.write("three"), 0), start="first")
    stream = Stream.objects.get()
    assert ingest.number(stream_id=stream.pk) == 0
    deliver(client, read_after(file.write("four"), 20), start="first")
    assert ingest.number(stream_id=stream.pk) == 2
    (gap,) = selectors.gaps_of(stream)
    assert (text(), gap.before_line) == (b"one\nthree\nfour\n", 2)


def test_a_log_of_which_the_beginning_never_comes_begins_with_a_gap(client: Client, attempt: Attempt) -> None:
    file = File(attempt)
    lost = file.write("one")
    deliver(client, file.write("two"))
    number()
    (gap,) = selectors.gaps_of(Stream.objects.get())
    assert (text(), gap.before_line, gap.after_ns) == (b"two\n", 1, None)
    assert gap.bytes == len(base64.b64decode(lost[0]["body"]["bytesValue"])) + 1


def test_the_first_line_of_a_container_comes_soon_and_one_behind_a_full_file_after_a_minute_of_silence(
    client: Client, attempt: Attempt, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream_of = File(attempt, starts=datetime.now(UTC))
    deliver(client, stream_of.write("one"))
    stream = Stream.objects.get()
    assert ingest.number(stream_id=stream.pk) == 0
    at = datetime.now(UTC)

    def later(seconds: float) -> None:
        monkeypatch.setattr(waiting, "now", lambda: at + timedelta(seconds=seconds))

    later(3)
    assert ingest.number(stream_id=stream.pk) == 1
    new = File(attempt, starts=at + timedelta(minutes=1))
    deliver(client, new.write("two"))
    later(60)
    assert ingest.number(stream_id=stream.pk) == 0
    later(64)
    assert ingest.number(stream_id=stream.pk) == 1


def test_what_the_follower_stored_meanwhile_does_not_come_twice(client: Client, attempt: Attempt) -> None:
    file = File(attempt)
    first, second = file.write("one"), file.write("two", "three")
    start = int(NOON.timestamp()) * 1_000_000_000
    deliver(client, first)
    stream = Stream.objects.get()
    assert services.append(stream_id=stream.pk, first_line=1, records=[Record(start + 1000, b"one\n")])
    number()
    # All that came was stored already. Nevertheless the follower has to stop here.
    assert not services.append(stream_id=stream.pk, first_line=2, records=[Record(start + 2000, b"two\n")])
    deliver(client, second)
    number()
    assert text() == b"one\ntwo\nthree\n"


def test_no_fault_of_the_portal_makes_a_collector_give_a_delivery_up(
    client: Client, attempt: Attempt, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(**_: Any) -> int:
        raise RuntimeError("a fault")

    monkeypatch.setattr(ingest, "accept", fail)
    answer = deliver(client, File(attempt).write("one"))
    assert (answer.status_code, answer["Retry-After"]) == (503, "5")


def test_a_delivery_is_kept_while_the_cache_is_away(
    client: Client, attempt: Attempt, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when Redis is: what it would have remembered is only not known."""
    for verb in ("get", "set"):
        monkeypatch.setattr(cache, verb, unreachable)
    assert deliver(client, File(attempt).write("one")).status_code == 200
    number()
    assert text() == b"one\n"
    assert ingest.progress(stream_id=Stream.objects.get().pk).read_ns == 0


def unreachable(*_given: Any) -> Any:
    raise RedisError("connection refused")


def test_bytes_that_never_come_are_a_gap(client: Client, attempt: Attempt) -> None:
    file = File(attempt)
    first, lost, last = file.write("one"), file.write("two", "three"), file.write("four")
    deliver(client, [*first, *last])
    number()
    gap = selectors.gaps_of(Stream.objects.get())[0]
    assert (text(), gap.before_line, gap.cause) == (b"one\nfour\n", 2, "skipped")
    assert gap.bytes == sum(len(base64.b64decode(each["body"]["bytesValue"])) + 1 for each in lost)


def test_fragments_are_one_line_and_an_unended_one_is_the_last(client: Client, attempt: Attempt) -> None:
    file = File(attempt)
    deliver(client, file.write("a long ", tag="P"))
    number()
    deliver(client, file.write("line"))
    deliver(client, file.write("no end", tag="P"))
    number()
    stream = Stream.objects.get()
    assert text() == b"a long line\n"
    ingest.finish(stream_id=stream.pk)
    assert text() == b"a long line\nno end"


def test_a_stream_passes_from_the_follower_to_the_collector(client: Client, attempt: Attempt) -> None:
    file = File(attempt)
    records = file.write("same", "same", "two", "three")
    deliver(client, records[:1])
    stream = Stream.objects.get()
    start = int(NOON.timestamp()) * 1_000_000_000
    stored = [Record(start + 1000, b"same\n"), Record(start + 2000, b"same\n"), Record(start + 3000, b"two\n")]
    assert services.append(stream_id=stream.pk, first_line=1, records=stored)
    deliver(client, records[1:])
    number()
    assert text() == b"same\nsame\ntwo\nthree\n"


@pytest.mark.parametrize(("begin", "end"), [(1000, 4000), (1000, None), (None, 4000)])
def test_what_the_follower_has_declared_missing_is_not_put_behind_newer_lines(
    client: Client, attempt: Attempt, begin: int | None, end: int | None
) -> None:
    """The node has it still, but its place in the log is taken: the gap stays, and so does the order."""
    file = File(attempt)
    records = file.write("one", "missed", "missed too", "four", "five")
    deliver(client, records[:1])
    stream = Stream.objects.get()
    start = int(NOON.timestamp()) * 1_000_000_000
    stored = [Record(start + 1000, b"one\n"), Record(start + 4000, b"four\n")]
    after_ns, until_ns = (None if bound is None else start + bound for bound in (begin, end))
    gap = Loss(2, Cause.SKIPPED, after_ns=after_ns, until_ns=until_ns)
    assert services.append(stream_id=stream.pk, first_line=1, records=stored, losses=[gap])
    deliver(client, records[1:])
    number()
    assert text() == b"one\nfour\nfive\n"
    assert [each.before_line for each in selectors.gaps_of(stream)] == [2]


def test_foreign_and_strange_records_are_counted_and_harm_nothing(client: Client, attempt: Attempt) -> None:
    file, foreign = File(attempt), File(attempt)
    foreign.path = foreign.path.replace(attempt.job.id.hex, "0" * 32)
    elsewhere = File(attempt)
    elsewhere.path = elsewhere.path.replace(attempt.namespace, "bt-language")
    system = File(attempt)
    system.path = "/var/log/pods/kube-system_etcd_uid/etcd/0.log"
    strange: list[dict[str, Any]] = [{"body": {"stringValue": "no log line"}}, {}]
    records = [
        *file.write("mine"), *foreign.write("x"), *elsewhere.write("x"), *system.write("x"), *strange,
    ]  # fmt: skip
    answer = deliver(client, records).json()
    assert answer["partialSuccess"]["rejectedLogRecords"] == "5"
    number()
    assert text() == b"mine\n"


def test_nothing_is_added_to_a_log_that_is_complete(client: Client, attempt: Attempt) -> None:
    file = File(attempt)
    deliver(client, file.write("one"))
    number()
    services.complete(stream_id=Stream.objects.get().pk)
    deliver(client, file.write("late"))
    number()
    assert text() == b"one\n"


@pytest.mark.parametrize("token", ["", "wrong", "an older on"])
def test_only_who_knows_a_token_delivers(client: Client, attempt: Attempt, token: str) -> None:
    assert deliver(client, File(attempt).write("one"), token=token).status_code == 401
    assert not Stream.objects.exists()


def test_without_tokens_the_door_is_closed(client: Client, attempt: Attempt, settings: Any) -> None:
    settings.BEAMTIME_INGEST_TOKENS = []
    assert deliver(client, File(attempt).write("one"), token="").status_code == 401


def test_a_flood_is_told_to_wait_and_nothing_of_it_is_taken(
    client: Client, attempt: Attempt, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingest, "MOST_WAITING", 100)
    file = File(attempt)
    assert deliver(client, file.write("x" * 200)).status_code == 200
    answer = deliver(client, file.write("y"))
    assert (answer.status_code, answer["Retry-After"]) == (429, "5")
    assert Parcel.objects.count() == 1


def test_so_many_deliveries_are_taken_at_once_and_the_others_are_told_to_come_again(
    client: Client, attempt: Attempt, monkeypatch: pytest.MonkeyPatch
) -> None:
    records, busy, go_on = File(attempt).write("one"), Semaphore(0), Event()

    def slowly(**_: Any) -> int:
        busy.release()
        assert go_on.wait(30)
        return 0

    monkeypatch.setattr(views, "PATIENCE", 0.05)
    with monkeypatch.context() as patch, ThreadPoolExecutor(views.MOST_AT_ONCE) as collectors:
        patch.setattr(ingest, "accept", slowly)
        try:
            taken = [collectors.submit(deliver, Client(), records) for _ in range(views.MOST_AT_ONCE)]
            assert all(busy.acquire(timeout=30) for _ in taken)
            refused = deliver(client, records)
            assert (refused.status_code, refused["Retry-After"]) == (429, "5")
            assert "send it again" in refused.json()["message"]
            # Who may not deliver at all is told so without waiting.
            assert deliver(client, records, token="wrong").status_code == 401
        finally:
            go_on.set()
        assert [each.result().status_code for each in taken] == [200] * views.MOST_AT_ONCE
    assert deliver(client, records).status_code == 200
    number()
    assert text() == b"one\n"


def test_what_is_refused_keeps_nobody_from_delivering(client: Client, attempt: Attempt) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    for _ in range(views.MOST_AT_ONCE + 1):
        answer = client.post("/ingest/v1/logs", b"no json", content_type="application/json", headers=headers)
        assert answer.status_code == 400
    assert deliver(client, File(attempt).write("one")).status_code == 200


@pytest.mark.parametrize(
    ("body", "changes", "status", "words"),
    [
        (b"no json", {}, 400, "it is no JSON"),
        (b"[" * 100_000, {}, 400, "it is no JSON"),
        (b"[]", {}, 400, "resourceLogs is no list"),
        (b'{"resourceLogs": [{"scopeLogs": [{"logRecords": [1]}]}]}', {}, 400, "a logRecord is no object"),
        (b"{}", {"content_type": "application/x-protobuf"}, 415, "`encoding` must be `json`"),
        (b"{}", {"headers": {"Content-Encoding": "gzip"}}, 400, "it is no gzip"),
        (b"{}", {"headers": {"Content-Encoding": "zstd"}}, 400, "`compression` must be"),
    ],
)
def test_what_is_no_delivery_is_refused_for_good(
    client: Client, body: bytes, changes: dict[str, Any], status: int, words: str
) -> None:
    given = {"content_type": "application/json"} | changes
    given["headers"] = {"Authorization": f"Bearer {TOKEN}"} | given.get("headers", {})
    answer = client.post("/ingest/v1/logs", body, **given)
    assert answer.status_code == status
    assert words in answer.json()["message"]


def test_a_bomb_is_not_unpacked(client: Client) -> None:
    bomb = gzip.compress(b" " * (80 * 1024 * 1024))
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Encoding": "gzip"}
    answer = client.post("/ingest/v1/logs", bomb, content_type="application/json", headers=headers)
    assert answer.status_code == 400
    assert "make the batches smaller" in answer.json()["message"]


def test_a_pod_s_name_says_whose_it_is() -> None:
    hexadecimal = "0123456789abcdef" * 2
    place = attempt_of_pod(f"bt-{hexadecimal}-2-7-x2b4z")
    assert place is not None
    assert (place.job_id.hex, place.attempt, place.index) == (hexadecimal, 2, 7)
    single = attempt_of_pod(f"bt-{hexadecimal}-1-x2b4z")
    assert single is not None
    assert (single.attempt, single.index) == (1, 0)
    for other in (
        "",
        "bt-x-1-abcde",
        f"bt-{hexadecimal}-0-abcde",
        f"bt-{hexadecimal}-1",
        f"other-{hexadecimal}-1-abcde",
    ):
        assert attempt_of_pod(other) is None


def test_the_operator_sees_what_was_delivered_and_how_it_was_answered(client: Client, attempt: Attempt) -> None:
    names = [
        ("beamtime_ingest_requests_total", {"status": "200"}),
        ("beamtime_ingest_requests_total", {"status": "400"}),
        ("beamtime_ingest_records_total", {"result": "accepted"}),
        ("beamtime_ingest_records_total", {"result": "refused"}),
    ]
    before = [counted(name, **labels) for name, labels in names]
    foreign = File(attempt)
    foreign.path = foreign.path.replace(attempt.object_name, "somebody-elses-pod")
    deliver(client, [*File(attempt).write("one", "two"), *foreign.write("not ours")])
    assert deliver(client, [None]).status_code == 400  # type: ignore[list-item]
    assert [counted(name, **labels) - was for (name, labels), was in zip(names, before, strict=True)] == [1, 1, 2, 1]
    assert figures.parcels_waiting() == 1
    number()
    assert figures.parcels_waiting() == 0


def test_the_operator_sees_how_much_of_what_collectors_deliver_is_stored_and_how_late(
    client: Client, attempt: Attempt, django_capture_on_commit_callbacks: Any
) -> None:
    names = [f"beamtime_log_{name}" for name in ("stored_lines_total", "stored_bytes_total", "lag_seconds_sum")]
    before = [counted(name, source="collector") for name in names]
    deliver(client, File(attempt, starts=now() - timedelta(hours=1)).write("one", "twenty"))
    with django_capture_on_commit_callbacks(execute=True):
        number()
    lines, size, late = (counted(name, source="collector") - was for name, was in zip(names, before, strict=True))
    assert (lines, size) == (2, len("one\ntwenty\n"))
    assert 3600 <= late < 3700


def test_a_leader_of_the_past_hands_no_log_back_and_numbers_nothing_of_it(client: Client, attempt: Attempt) -> None:
    old = leases.take(name="watch:default", holder="old", ttl=timedelta(seconds=30))
    leases.release(name="watch:default", holder="old")
    leases.take(name="watch:default", holder="new", ttl=timedelta(seconds=30))
    file = File(attempt)
    deliver(client, file.write("one"))
    number()
    file.write("never delivered")
    deliver(client, file.write("two"))
    stream = Stream.objects.get()
    with pytest.raises(leases.FencedOff):
        ingest.hand_back(stream_id=stream.pk, fence=old)
    stream.refresh_from_db()
    assert (stream.source, stream.next_line, Parcel.objects.count()) == (Source.COLLECTOR, 2, 1)
