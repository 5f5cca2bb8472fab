"""What no log should have in it, and what nobody should ask for: the page stays a page."""

import hashlib
import json
import re
import socket
import time
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.demo import Demo, wait_until
from tests.browser.test_log import KEEP_SOCKETS, open_log, rows, wait_for_lines

EMPTY_LINES, PODS = 10_000_000, 256
# Everything is sealed already, under one time, so that each segment is the same but for its place.
SEED = """
import hashlib
from django.utils import timezone
from portal.clusters.specs import ContainerRef
from portal.jobs.models import Attempt, Job, Pod
from portal.logs import services
from portal.logs.models import Segment, Stream
from portal.logs.specs import Record
from portal.logs.store.blocks import build
from portal.logs.store.portion import Portion

def ref(pod):
    return ContainerRef(cluster="default", namespace="n", pod=pod, pod_uid=pod, container="main")

LINES, EACH, PART = 10_000_000, 400_000, 10_000
stream = services.open_stream(job_id="EMPTY", attempt_number=1, ref=ref("empty"))
stamps = (10**18).to_bytes(8, "little") * PART
built = build([Portion(n + 1, PART, n, b"\\n" * PART, stamps) for n in range(0, EACH, PART)])
Segment.objects.bulk_create(
    Segment(stream=stream, first_line=n + 1, lines=EACH, first_byte=n, bytes=EACH, sha256=built.sha256,
            index=built.index, data=built.body)
    for n in range(0, LINES, EACH)
)
now = timezone.now()
Stream.objects.filter(pk=stream.pk).update(
    next_line=LINES + 1, bytes=LINES, sealed_line=LINES + 1, sealed_bytes=LINES, last_time_ns=10**18,
    completed_at=now, sealed_at=now, sha256=hashlib.sha256(b"\\n" * LINES).hexdigest(),
)

job = Job.objects.get(pk="MANY")
Job.objects.filter(pk=job.pk).update(work=job.work | {"runs": 256})
attempt = Attempt.objects.get(job=job)
for n in range(1, 256):
    pod = f"many-{n}"
    Pod.objects.create(attempt=attempt, uid=pod, name=pod, index=n, phase="Failed" if n == 200 else "Succeeded",
                       node="node-1", started_at=now, ended_at=now, exit_code=int(n == 200))
    stream = services.open_stream(job_id=job.pk, attempt_number=1, ref=ref(pod), pod_index=n)
    records = [Record(10**18 + n * 10 + k, f"rank {n} says {k}\\n".encode()) for k in range(3)]
    services.append(stream_id=stream.pk, first_line=1, records=records)
    services.complete(stream_id=stream.pk)
"""


def finished(demo: Demo, job: str) -> str:
    """The id of the job's one log."""
    demo.wait(job, "succeeded")
    return demo.stream(job)


@pytest.fixture(scope="module")
def seeded(demo: Demo) -> tuple[str, str]:
    """A job whose second log has ten million empty lines, and one of 256 pods."""
    empty = demo.script("true", "ten million empty lines")
    many = demo.submit("array", "many pods", runs=1, epochs=1, seconds_per_epoch=0)
    finished(demo, empty)
    finished(demo, many)
    demo.manage("shell", "-c", SEED.replace("EMPTY", empty).replace("MANY", many))
    return empty, many


def test_a_line_of_40_mib_is_shown_in_pieces_and_kept_whole(page: Page, demo: Demo) -> None:
    size = 40 * 2**20
    job = demo.script(f"head -c {size} /dev/zero | tr '\\0' x; echo; echo after it")
    stream = finished(demo, job)
    open_log(page, job)
    wait_for_lines(page, 161)
    expect(page.locator("#L161 .bt-log-text")).to_have_text("after it")
    page.locator(".bt-log").press("Home")
    expect(page.locator("#L1")).to_be_in_viewport()
    expect(page.locator("#L1 .bt-log-text")).to_have_text(
        re.compile(r"^x{8000,8192}… \([\d,]+ more bytes in the download\)$")
    )
    assert all(len(text) < 8300 for _, text in rows(page))
    download = demo.read(f"/api/v1/streams/{stream}/download/")
    assert hashlib.sha256(download).digest() == hashlib.sha256(b"x" * size + b"\nafter it\n").digest()


def test_a_binary_file_on_stdout_is_only_text(page: Page, demo: Demo) -> None:
    """Every byte there is, in any order: control characters, halves of characters, the beginnings of sequences."""
    job = demo.python(
        "import random, sys\nsys.stdout.buffer.write(bytes(range(256)) * 4 + random.Random(7).randbytes(200_000))\n"
        "sys.stdout.buffer.write(b'\\n\\x1b[0mend\\n')"
    )
    stream = finished(demo, job)
    open_log(page, job)
    title = page.title()
    lines = demo.lines(stream)
    wait_for_lines(page, len(lines))
    expect(page.locator(f"#L{len(lines)} .bt-log-text")).to_have_text("end")
    page.locator(".bt-log").press("Home")
    expect(page.locator("#L1")).to_be_in_viewport()
    assert [n for n, _ in rows(page)][:100] == list(range(1, 101))
    # Nothing but text, colours, links and signs, and no control character that could do anything.
    inside = page.locator(".bt-log-text *").evaluate_all("all => [...new Set(all.map((it) => it.localName))]")
    assert set(inside) <= {"span", "a"}
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", "".join(text for _, text in rows(page)))
    assert page.title() == title


def test_ten_million_empty_lines_are_all_in_reach(page: Page, demo: Demo, seeded: tuple[str, str]) -> None:
    job = seeded[0]
    stream = next(each["id"] for each in demo.job(job)["streams"] if each["lines"] == EMPTY_LINES)
    page.goto(f"/teams/vision/jobs/{job}/log/?stream={stream}")
    wait_for_lines(page, EMPTY_LINES)
    expect(page.locator(f"#L{EMPTY_LINES}")).to_be_in_viewport()
    page.locator(".bt-log").press("l")
    page.locator("#log-line").fill("5000000")
    page.locator("#log-line").press("Enter")
    expect(page.locator("#L5000000")).to_be_in_viewport()
    page.locator(".bt-log").press("Home")
    expect(page.locator("#L1")).to_be_in_viewport()
    assert page.locator(".bt-log-row").count() <= 2500
    field = page.get_by_role("searchbox", name="Search in this log")
    field.fill("anything")
    field.press("Enter")
    expect(page.locator("[data-log-hits]")).to_have_text("not found")


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        ("#L0", 1), ("#L-1", 900), ("#L1000000000000000000", 900), ("#Lten", 900), ("#L5<script>", 900), ("#L7", 7),
        ("?from=0", 1), ("?from=-1", 900), ("?from=1000000000000000000", 900), ("?from=ten", 900), ("?from=7", 7),
    ],
)  # fmt: skip
def test_a_line_in_the_address_that_is_none_opens_at_one_that_is(
    page: Page, demo: Demo, short_log: str, asked: str, shown: int
) -> None:
    open_log(page, short_log, asked)
    expect(page.locator(f"#L{shown}")).to_be_in_viewport()
    wait_for_lines(page, 900)


@pytest.fixture(scope="module")
def short_log(demo: Demo) -> str:
    job = demo.script("seq 1 900")
    finished(demo, job)
    return job


def test_a_line_asked_for_in_the_field_that_is_none(page: Page, short_log: str) -> None:
    open_log(page, short_log)
    wait_for_lines(page, 900)
    for asked, shown in (("0", 900), ("ten", 900), ("-1", 1), ("1000000000000000000", 900)):
        page.locator(".bt-log").press("l")
        page.locator("#log-line").fill(asked)
        page.locator("#log-line").press("Enter")
        expect(page.locator(f"#L{shown}")).to_be_in_viewport()
        page.locator("#log-line").press("Escape")


def test_the_page_of_a_job_with_256_pods(page: Page, demo: Demo, seeded: tuple[str, str]) -> None:
    """A bounded page in every view: not 256 tables, boxes or sockets; and every log is in reach."""
    job = seeded[1]
    page.add_init_script(KEEP_SOCKETS)
    page.goto(f"/teams/vision/jobs/{job}/")
    runs = page.locator("#job-runs tbody tr")
    assert 1 < runs.count() <= 60
    expect(runs.first).to_contain_text("Failed")
    expect(page.locator("#log-stream option")).to_have_count(PODS)
    page.goto(f"/teams/vision/jobs/{job}/log/?view=merged")
    expect(page.locator(".bt-log-row", has_text="rank 255 says 2")).to_be_attached()
    page.locator(".bt-log").hover()

    def first_is_shown() -> bool:
        page.mouse.wheel(0, -20_000)
        return bool(page.locator(".bt-log-row", has_text=re.compile(r"rank 1 says 0$")).count())

    wait_until(first_is_shown, "the first of them is shown")
    page.goto(f"/teams/vision/jobs/{job}/log/?view=side")
    expect(page.locator(".bt-log-side .bt-log-card")).to_have_count(2)
    assert page.evaluate("window.sockets.length") <= 3
    assert page.evaluate("document.documentElement.scrollWidth") <= 1440


def test_a_socket_that_sends_64_mib_is_closed_at_once(demo: Demo, short_log: str, member_state: Path) -> None:
    """As one message, of which the portal takes no more than it must, and without a byte of it in its memory."""
    stream = demo.job(short_log)["streams"][0]["id"]
    cookies = json.loads(member_state.read_text())["cookies"]
    before = resident_mib(demo.process.pid)
    with socket.create_connection(("127.0.0.1", demo.port), timeout=20) as line:
        line.sendall(handshake(demo, f"/ws/v1/streams/{stream}/", cookies))
        assert line.recv(4096).startswith(b"HTTP/1.1 101")
        line.sendall(b"\x81\xff" + (64 * 2**20).to_bytes(8, "big") + b"mask")
        sent, refused = 0, False
        while sent < 64 * 2**20 and not refused:
            try:
                line.sendall(bytes(2**20))
                sent += 2**20
            except OSError:
                refused = True
            time.sleep(0.01)
    assert refused
    assert sent <= 8 * 2**20, f"{sent} bytes were taken"
    assert resident_mib(demo.process.pid) - before < 16


def handshake(demo: Demo, path: str, cookies: list[dict[str, str]]) -> bytes:
    crumbs = "; ".join(f"{each['name']}={each['value']}" for each in cookies)
    lines = [
        f"GET {path} HTTP/1.1", f"Host: 127.0.0.1:{demo.port}", f"Origin: {demo.url}", f"Cookie: {crumbs}",
        "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    ]  # fmt: skip
    return "\r\n".join([*lines, "", ""]).encode()


def resident_mib(pid: int) -> float:
    return int(re.findall(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[0]) / 1024
