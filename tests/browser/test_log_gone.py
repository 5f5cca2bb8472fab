"""A log that cannot be shown, wholly or in part: the page says why and does not ask again and again."""

import pytest
from playwright.sync_api import BrowserContext, Page, Request, expect

from tests.browser.conftest import Complaints
from tests.browser.demo import Demo
from tests.browser.test_log import numbers, open_log

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
