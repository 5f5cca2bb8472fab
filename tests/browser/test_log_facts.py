"""What is known of a log beside its lines: what is missing, and when it was; on a page that is open already."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, WebSocketRoute, expect

from tests.browser.conftest import DESKTOP
from tests.browser.demo import Demo
from tests.browser.test_log import NO_SOCKETS, open_log, wait_for_lines

GAP = """
from portal.logs.models import Cause
from portal.logs.services import note_gap
note_gap(stream_id="{stream}", before_line={line}, cause=Cause.{cause}, lines={lines}, bytes=1000)
"""


def miss(demo: Demo, stream: str, line: int, cause: str, lines: int) -> None:
    demo.manage("shell", "--verbosity=0", "-c", GAP.format(stream=stream, line=line, cause=cause, lines=lines))


def test_gaps_of_an_open_page_follow_what_is_known(page: Page, demo: Demo) -> None:
    """A count that grows, another gap at the same line, and one behind the last line: shown without a reload."""
    job = demo.script("for n in 1 2 3; do echo line $n; done; sleep 90")
    demo.wait(job, "running")
    stream = str(demo.job(job)["streams"][0]["id"])
    page.clock.install()
    open_log(page, job)
    expect(page.locator("#L3")).to_be_visible()
    gaps, end = page.locator("#L3 .bt-log-gap"), page.locator(".bt-log > div > .bt-log-gap")

    def look() -> None:
        page.clock.fast_forward(31_000)

    miss(demo, stream, 3, "SKIPPED", 5)
    look()
    expect(gaps).to_have_text(re.compile("5 lines are missing before line 3"))
    miss(demo, stream, 3, "SKIPPED", 7)
    miss(demo, stream, 3, "ROTATED", 2)
    miss(demo, stream, 4, "FULL", 5)
    look()
    expect(gaps).to_have_count(2)
    for words in (
        "7 lines are missing before line 3: the cluster's log",
        "2 lines are missing before line 3: the log was",
    ):
        expect(gaps.filter(has_text=words)).to_have_count(1)
    expect(end).to_have_text(re.compile("5 more lines"))
    miss(demo, stream, 4, "FULL", 12)
    look()
    expect(end).to_have_text(re.compile("12 more lines"))
    expect(page.locator("[data-log-gaps]")).to_have_text("but for 3 gaps")
    demo.cancel(job)


def test_a_gap_that_is_announced_is_shown_at_once(page: Page, demo: Demo) -> None:
    """The job's socket says that a log has news; nobody waits for the next look."""
    job = demo.script("for n in 1 2 3; do echo line $n; done; sleep 90")
    demo.wait(job, "running")
    stream = str(demo.job(job)["streams"][0]["id"])
    sockets: list[WebSocketRoute] = []

    def keep(socket: WebSocketRoute) -> None:
        sockets.append(socket)

    page.route_web_socket(re.compile(r"/ws/v1/jobs/"), keep)
    open_log(page, job)
    expect(page.locator("#L3")).to_be_visible()
    miss(demo, stream, 3, "SKIPPED", 5)
    sockets[-1].send(f'{{"type":"log","stream":"{stream}"}}')
    expect(page.locator("#L3 .bt-log-gap")).to_contain_text("5 lines are missing", timeout=10_000)
    demo.cancel(job)


def test_both_gaps_of_a_line_are_there_when_the_page_is_opened(page: Page, demo: Demo) -> None:
    job = demo.script("for n in 1 2 3; do echo line $n; done")
    demo.wait(job, "succeeded")
    stream = demo.stream(job)
    miss(demo, stream, 2, "SKIPPED", 5)
    miss(demo, stream, 2, "ROTATED", 2)
    open_log(page, job)
    expect(page.locator("#L2 .bt-log-gap")).to_have_count(2)
    page.wait_for_timeout(1000)
    expect(page.locator("#L2 .bt-log-gap")).to_have_count(2)


@pytest.fixture(params=["Asia/Kolkata", "UTC"])
def elsewhere(
    chromium: Browser, member_state: object, demo: Demo, request: pytest.FixtureRequest
) -> Iterator[BrowserContext]:
    """A browser of `member` in another zone than the site, whose is UTC, or in the same."""
    made = chromium.new_context(
        storage_state=member_state,  # type: ignore[arg-type]
        viewport=DESKTOP,
        base_url=demo.url,
        timezone_id=request.param,
    )
    made.set_default_timeout(20_000)
    yield made
    made.close()


@pytest.mark.parametrize("view", ["one", "level"])
def test_times_are_in_the_readers_zone_and_say_so(elsewhere: BrowserContext, demo: Demo, view: str) -> None:
    job = demo.script("echo ValueError: one")
    demo.wait(job, "succeeded")
    line = demo.lines(demo.stream(job))[0]
    page = elsewhere.new_page()
    open_log(page, job, "?view=level&level=error" if view == "level" else "")
    times = page.get_by_role("button", name=re.compile(r"^Times \("))
    times.click()
    zone = page.evaluate("Intl.DateTimeFormat().resolvedOptions().timeZone")
    mine = page.evaluate("(t) => new Date(t).toLocaleTimeString('en-GB')", line["t"])
    expect(page.locator(".bt-log-row .bt-log-time").first).to_have_text(mine)
    foreign = zone != "UTC"
    said = f"Times ({zone}; other times on this page: UTC)" if foreign else "Times (UTC)"
    expect(times).to_have_attribute("title", said)
    expect(times).to_have_attribute("aria-label", said)
    if view == "one":
        wait_for_lines(page, 1)
        expect(page.locator("[data-log-last]")).to_have_text(f"· last line {mine}{f' {zone}' if foreign else ''}")


def test_where_there_is_no_socket_gaps_come_too(page: Page, demo: Demo) -> None:
    job = demo.script("for n in 1 2 3; do echo line $n; done; sleep 90")
    demo.wait(job, "running")
    stream = str(demo.job(job)["streams"][0]["id"])
    page.add_init_script(NO_SOCKETS)
    page.clock.install()
    open_log(page, job)
    expect(page.locator("#L1")).to_be_visible()
    miss(demo, stream, 2, "SKIPPED", 5)
    page.clock.fast_forward(31_000)
    expect(page.locator("#L2 .bt-log-gap")).to_contain_text("5 lines are missing")
    demo.cancel(job)
