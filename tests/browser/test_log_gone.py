"""A log that cannot be shown, wholly or in part: the page says why and does not ask again and again."""

import pytest
from playwright.sync_api import BrowserContext, Page, Request, expect

from tests.browser.conftest import Complaints
from tests.browser.demo import Demo, wait_until
from tests.browser.test_log import KEEP_SOCKETS, NO_SOCKETS, numbers, open_log, rows, wait_for_lines
from tests.browser.test_log_ways import NO_EVENTS

DAMAGE = """
from portal.logs.models import Segment, Stream
from portal.logs.services import seal_stream
stream = Stream.objects.get(pk="{stream}")
seal_stream(stream_id=stream.pk)
segment = Segment.objects.get(stream=stream)
body = bytearray(segment.data)
body[min(100, len(body) // 4)] ^= 1
Segment.objects.filter(pk=segment.pk).update(data=bytes(body))
"""
EXPIRE = """
from portal.core.clock import now
from portal.logs.models import Stream
Stream.objects.filter(pk="{stream}").update(expired_at=now())
"""
CLEAR = """
import time
from django.conf import settings
from portal.jobs.services import collect_finished
settings.BEAMTIME_KEEP_FINISHED = 0
while not collect_finished():
    time.sleep(0.1)
"""
LONG = "for n in range(1, 12_001):\n    print('step', n, 'x' * 100)"


def change(demo: Demo, what: str, job: str) -> None:
    demo.manage("shell", "--verbosity=0", "-c", what.format(stream=demo.stream(job)))


def watched(context: BrowserContext, complaints: Complaints) -> tuple[Page, list[str]]:
    """A page, and the addresses of lines that it asks for."""
    page, asked = context.new_page(), list[str]()
    complaints.expected = ["status of 500"]
    complaints.listen(page)

    def note(request: Request) -> None:
        if "/lines/" in request.url:
            asked.append(request.url)

    page.on("request", note)
    return page, asked


@pytest.mark.parametrize(
    ("what", "words"),
    [(DAMAGE, "This log's stored copy is damaged"), (EXPIRE, "Expired on")],
    ids=["damaged", "expired"],
)
def test_why_there_are_no_lines_stays_on_the_page(context: BrowserContext, demo: Demo, what: str, words: str) -> None:
    job = demo.script("for n in 1 2 3; do echo line $n; done")
    demo.wait(job, "succeeded")
    change(demo, what, job)
    complaints = Complaints()
    page, asked = watched(context, complaints)
    open_log(page, job)
    expect(page.locator(".bt-log")).to_contain_text(words)
    page.wait_for_timeout(3000)
    expect(page.locator(".bt-log")).to_contain_text(words)
    assert numbers(page) == []
    assert len(asked) <= 3, asked
    assert complaints.unexpected() == []


def test_case_11_a_log_stays_on_the_screen_and_in_reach_when_its_pod_is_cleared_away(page: Page, demo: Demo) -> None:
    job = demo.script("for n in 1 2 3; do echo line $n; done", "cleared away")
    open_log(page, job)
    wait_for_lines(page, 3)
    lines = [(n, f"line {n}") for n in (1, 2, 3)]
    assert rows(page) == lines

    demo.manage("shell", "--verbosity=0", "-c", CLEAR)
    wait_until(lambda: demo.job(job)["attempts"][0]["pods"][0]["gone"], "the pod to be gone")

    assert rows(page) == lines
    page.reload()
    wait_for_lines(page, 3)
    assert rows(page) == lines


KEEP_EVENTS = """(() => {
  window.sources = [];
  const Real = window.EventSource;
  window.EventSource = class extends Real { constructor(...args) { super(...args); window.sources.push(this); } };
})()"""
OF_LOGS = "(all) => all.filter((one) => one.url.includes('/streams/')).length"
DROP = """() => {
  (window.sockets || []).forEach((socket) => socket.close());
  (window.sources || []).forEach((source) => source.dispatchEvent(new Event("error")));
}"""


@pytest.mark.parametrize(
    ("scripts", "way"),
    [((KEEP_SOCKETS,), "socket"), ((NO_SOCKETS, KEEP_EVENTS), "events"), ((NO_SOCKETS, NO_EVENTS), "poll")],
    ids=["socket", "events", "poll"],
)
def test_case_43_a_log_that_expires_under_an_open_page_is_told_as_expired(
    context: BrowserContext, demo: Demo, scripts: tuple[str, ...], way: str
) -> None:
    """By whichever way its lines come: the sentence stands in their place, and nothing is asked again."""
    job = demo.script("for n in 1 2 3; do echo line $n; done; sleep 90")
    demo.wait(job, "running")
    complaints = Complaints()
    page, asked = watched(context, complaints)
    complaints.expected = ["status of 410", "WebSocket connection"]
    for script in scripts:
        page.add_init_script(script)
    open_log(page, job)
    expect(page.locator("#L3")).to_be_visible()
    wait_until(lambda: page.evaluate("sessionStorage.getItem('bt-log-way')") == way, f"lines come by {way}")
    demo.manage("shell", "--verbosity=0", "-c", EXPIRE.format(stream=demo.job(job)["streams"][0]["id"]))
    page.evaluate(DROP)
    expect(page.locator(".bt-log")).to_contain_text("Expired on ", timeout=30_000)
    assert numbers(page) == []
    expect(page.get_by_text("end of the log")).to_have_count(0)
    asked.clear()
    count = f"[window.sockets, window.sources].map((all) => ({OF_LOGS})(all || []))"
    opened = page.evaluate(count)
    page.wait_for_timeout(4000)
    expect(page.locator(".bt-log")).to_contain_text("Expired on ")
    assert asked == []
    assert page.evaluate(count) == opened
    assert complaints.unexpected() == []
    demo.cancel(job)


def test_a_part_that_is_damaged_is_told_when_somebody_goes_there(context: BrowserContext, demo: Demo) -> None:
    job = demo.python(LONG)
    demo.wait(job, "succeeded")
    change(demo, DAMAGE, job)
    complaints = Complaints()
    page, asked = watched(context, complaints)
    open_log(page, job)
    expect(page.locator("#L12000")).to_be_visible()
    page.locator(".bt-log").focus()
    page.keyboard.press("Home")
    expect(page.locator("#bt-toasts")).to_contain_text("This log's stored copy is damaged")
    page.wait_for_timeout(2000)
    assert len(asked) <= 8, asked
    assert complaints.unexpected() == []
