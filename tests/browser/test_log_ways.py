"""How lines reach the page where sockets fail, and several logs at once."""

import json
import re
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, Route, WebSocketRoute, expect

from tests.browser.demo import Demo, wait_until
from tests.browser.test_log import NO_SOCKETS, open_log, rows, wait_for_lines

COUNT_EVENTS = """(() => {
  window.sources = [];
  const Real = window.EventSource;
  window.EventSource = class extends Real { constructor(...args) { super(...args); window.sources.push(this.url); } };
})()"""
NO_EVENTS = """(() => {
  window.EventSource = class {
    constructor() { setTimeout(() => this.onerror?.({})); }
    addEventListener() {}
    close() {}
  };
})()"""
WAY = "sessionStorage.getItem('bt-log-way')"
TICKS = "import time\nfor n in range(1, 81):\n    print('tick', n, flush=True)\n    time.sleep(0.05)"


@pytest.mark.parametrize(
    ("scripts", "way"), [((NO_SOCKETS, COUNT_EVENTS), "events"), ((NO_SOCKETS, NO_EVENTS), "poll")]
)
def test_case_03_each_line_once_without_a_socket(
    context: BrowserContext, demo: Demo, scripts: tuple[str, ...], way: str
) -> None:
    """By events, and where these fail too by plain requests; the page finds out by itself and remembers."""
    job = demo.python(TICKS)
    page = context.new_page()
    for script in scripts:
        page.add_init_script(script)
    demo.wait(job, "running", "succeeded")
    open_log(page, job)
    wait_for_lines(page, 80)
    assert rows(page) == [(n, f"tick {n}") for n in range(1, 81)]
    assert page.evaluate(WAY) == way
    if way == "events":
        assert page.evaluate("window.sources.length") >= 1
    page.close()


BAR = r"""
import sys, time
for n in range(1, 201):
    sys.stdout.write(f"\rtrain: {n * 100 // 200:3d}% {n}/200")
    sys.stdout.flush()
    time.sleep(0.03)
time.sleep(2)
"""


def test_case_09_a_progress_bar_changes_in_place(page: Page, demo: Demo) -> None:
    """200 states without a line end: one row, never two, that shows the last state and keeps it at the end."""
    job = demo.python(BAR)
    demo.wait(job, "running")
    open_log(page, job)
    bar = page.locator(".bt-log-row.is-open .bt-log-text")
    expect(bar).to_have_text(re.compile(r"^train: +\d+% \d+/200$"))
    seen = bar.inner_text()
    wait_until(lambda: bar.count() == 0 or bar.inner_text() != seen, "the bar moves in its place")
    assert page.locator(".bt-log-row:not(.bt-log-row--note)").count() == 1
    wait_for_lines(page, 1)
    assert rows(page) == [(1, "train: 100% 200/200")]


SLOW = """(() => {
  const real = window.requestAnimationFrame.bind(window);
  window.requestAnimationFrame = (work) => (window.held ? window.held.push(work) : real(work));
  window.release = () => { const held = window.held; window.held = null; held.forEach((work) => real(work)); };
  const Real = window.WebSocket;
  window.WebSocket = class extends Real {
    constructor(...args) {
      super(...args);
      this.addEventListener("message", (event) => { window.heard = JSON.parse(event.data).to || window.heard; });
    }
  };
})()"""


def test_a_reader_too_slow_for_the_log_is_told_and_loses_nothing(page: Page, demo: Demo) -> None:
    """The page cannot draw while 20,000 lines come: the end is shown then, the rest is a click away."""
    job = demo.python(
        "import time\nprint('begin', flush=True)\ntime.sleep(4)\n"
        "print('\\n'.join(f'line {n}' for n in range(2, 20001)), flush=True)\ntime.sleep(30)"
    )
    page.add_init_script(SLOW)
    demo.wait(job, "running")
    open_log(page, job)
    expect(page.locator("#L1")).to_be_visible()
    page.evaluate("window.held = []")
    wait_until(lambda: page.evaluate("window.heard") == 20_001, "all lines have come")
    page.evaluate("window.release()")
    expect(page.locator("#L20000")).to_be_in_viewport()
    notice = page.get_by_role("button", name=re.compile(r"^1\d,\d{3} lines skipped, show them$"))
    expect(notice).to_be_visible()
    notice.click()
    expect(page.locator(".bt-log-row.is-chosen")).to_be_in_viewport()
    assert all(n == 1 or text == f"line {n}" for n, text in rows(page))
    expect(notice).to_be_hidden()
    demo.cancel(job)


HOLD = """(() => {
  const real = window.requestAnimationFrame.bind(window);
  window.requestAnimationFrame = (work) => (window.held ? window.held.push(work) : real(work));
  window.release = () => { const held = window.held; window.held = null; held.forEach((work) => real(work)); };
})()"""


def test_the_notice_of_skipped_lines_names_every_line_that_is_not_drawn(page: Page, demo: Demo) -> None:
    """Also those that had come before the server went on, and were not drawn yet."""
    job = demo.python(
        "import time\nprint('begin', flush=True)\ntime.sleep(4)\n"
        "print('\\n'.join(f'line {n}' for n in range(2, 20001)), flush=True)\ntime.sleep(30)"
    )
    held: list[Any] = []

    def skip(client: WebSocketRoute) -> None:
        server = client.connect_to_server()

        def pass_on(message: str | bytes) -> None:
            """The first thousand lines as they come; those behind are left out, up to the last few hundred."""
            frame = json.loads(message)
            if frame["to"] <= 1001 or len(held) > 1:
                client.send(message)
            elif frame["to"] > 19_501:
                held.append(frame)
                client.send(json.dumps({"type": "skipped", "from": frame_from[0], "to": frame["from"]}))
                client.send(message)
            elif not held:
                held.append(frame)
                frame_from.append(frame["from"])

        server.on_message(pass_on)

    frame_from: list[int] = []
    page.add_init_script(HOLD)
    page.route_web_socket(re.compile(r"/ws/v1/streams/"), skip)
    demo.wait(job, "running")
    open_log(page, job)
    expect(page.locator("#L1")).to_be_visible()
    page.evaluate("window.held = []")

    def gone_on() -> bool:
        page.wait_for_timeout(50)
        return len(held) > 1

    wait_until(gone_on, "the server has gone on")
    page.evaluate("window.release()")
    expect(page.locator("#L20000")).to_be_in_viewport()
    notice = page.get_by_role("button", name=re.compile(r"lines skipped, show them$"))
    expect(notice).to_be_visible()
    first = rows(page)[0][0]
    assert frame_from[0] > 2, "some lines had come"
    assert notice.inner_text() == f"{first - 2:,} lines skipped, show them", "line 1 was drawn, all others are named"
    notice.click()
    expect(page.locator("#L2.is-chosen")).to_be_in_viewport()
    demo.cancel(job)


@pytest.fixture(scope="module")
def sweep(demo: Demo) -> str:
    job = demo.submit("array", "three runs", runs=3, epochs=3, seconds_per_epoch=0.1)
    demo.wait(job, "succeeded")
    demo.stream(job)
    return job


def test_all_logs_merged_and_filtered(page: Page, demo: Demo, sweep: str) -> None:
    streams = demo.job(sweep)["streams"]
    total = sum(stream["lines"] for stream in streams)
    page.goto(f"/teams/vision/jobs/{sweep}/log/?view=merged")
    lines = page.locator(".bt-log-row")
    expect(lines).to_have_count(total)
    assert sorted(set(page.locator(".bt-log-row .bt-log-rank").all_inner_texts())) == ["0", "1", "2"]
    page.get_by_text("3 logs").click()
    page.locator("[data-log-pick] input").first.uncheck()
    wait_until(lambda: len(set(page.locator(".bt-log-row .bt-log-rank").all_inner_texts())) == 2, "one log is left out")
    page.locator("[data-log-level]").select_option("error")
    expect(lines).to_have_count(0)
    expect(page.get_by_text("No line of these logs is of this kind.")).to_be_visible()


LONG = """
from portal.clusters.specs import ContainerRef
from portal.logs import services
from portal.logs.specs import Loss, Record
for rank in (7, 8):
    ref = ContainerRef(cluster="default", namespace="n", pod=f"long-{rank}", pod_uid=f"long-{rank}", container="main")
    stream = services.open_stream(job_id="JOB", attempt_number=1, ref=ref, pod_index=rank)
    records = [Record((n + rank) * 10**9, f"long {rank} line {n}\\n".encode()) for n in range(1, 4001)]
    records[2] = Record(records[2].time_ns, f"ValueError: of {rank}\\n".encode())
    losses = [Loss(5, "skipped"), Loss(4001, "skipped")] if rank == 7 else []
    services.append(stream_id=stream.pk, first_line=1, records=records, losses=losses)
    services.complete(stream_id=stream.pk)
"""


def test_merged_logs_of_many_lines_are_all_in_reach(page: Page, demo: Demo) -> None:
    """Up to the first line and down again to the last, with a bounded window."""
    job = demo.submit("array", "long logs", runs=1, epochs=1, seconds_per_epoch=0.1)
    demo.wait(job, "succeeded")
    demo.stream(job)
    demo.manage("shell", "-c", LONG.replace("JOB", job))
    page.goto(f"/teams/vision/jobs/{job}/log/?view=merged")
    lines = page.locator(".bt-log-row")
    last = lines.last.inner_text()
    page.locator(".bt-log").hover()

    def turned(by: int, until: str) -> bool:
        page.mouse.wheel(0, by)
        assert lines.count() <= 3500
        return bool(page.locator(".bt-log-row", has_text=re.compile(until)).count())

    wait_until(lambda: turned(-20_000, r"long 7 line 1$"), "the first line is shown")
    assert lines.last.inner_text() != last, "the window has left the end"
    wait_until(lambda: turned(20_000, "epoch"), "the last line is shown")
    assert lines.last.inner_text() == last


def test_rare_lines_and_gaps_are_found_far_up_in_merged_logs(page: Page, demo: Demo) -> None:
    job = demo.submit("array", "rare lines", runs=1, epochs=1, seconds_per_epoch=0.1)
    demo.wait(job, "succeeded")
    demo.stream(job)
    demo.manage("shell", "-c", LONG.replace("long-", "rare-").replace("JOB", job))
    page.goto(f"/teams/vision/jobs/{job}/log/?view=merged")
    gaps = page.locator(".bt-log-gap")
    # Behind the last line of one log, below all lines.
    expect(gaps).to_have_count(1)
    page.locator("[data-log-level]").select_option("error")
    lines = page.locator(".bt-log-row")
    # The line behind a gap is there at every level, so that what is missing is never hidden.
    expect(lines).to_have_count(3)
    assert [text.split("\n")[-1] for text in lines.all_inner_texts()] == [
        "ValueError: of 7",
        "ValueError: of 8",
        "long 7 line 5",
    ]
    expect(gaps).to_have_count(2)
    expect(gaps.first).to_contain_text("missing before line 5")
    lines.last.get_by_role("link").click()
    expect(page).to_have_url(re.compile(r"\?stream=[0-9a-f-]+&from=5$"))
    expect(page.locator("#L5")).to_contain_text("long 7 line 5")


def test_logs_beside_each_other_are_read_apart(page: Page, sweep: str) -> None:
    page.goto(f"/teams/vision/jobs/{sweep}/log/?view=side")
    cards = page.locator(".bt-log-side .bt-log-card")
    expect(cards).to_have_count(2)
    first = cards.first
    first.get_by_role("searchbox").fill("epoch")
    first.get_by_role("searchbox").press("Enter")
    expect(first.locator("[data-log-hits]")).to_have_text(re.compile(r"^\d of \d"))
    expect(cards.last.locator("mark")).to_have_count(0)
    page.get_by_text("2 of 3 logs").click()
    page.locator(".bt-log-pick input[type=checkbox]").first.check()
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page.locator(".bt-log-side .bt-log-card")).to_have_count(3)


@pytest.mark.parametrize("width", [1440, 360])
def test_one_log_alone_is_read_by_level_with_the_keyboard(page: Page, demo: Demo, width: int) -> None:
    """All lines, warnings and errors, errors; from there to the line in the whole log, and back to all."""
    job = demo.script("echo fine; echo WARN slow; echo fine; echo ValueError: no; echo fine")
    demo.wait(job, "succeeded")
    demo.stream(job)
    page.set_viewport_size({"width": width, "height": 740})
    open_log(page, job)
    level = page.get_by_role("combobox", name="Which lines")
    expect(level).to_be_in_viewport()
    level.focus()
    page.keyboard.press("W")
    expect(page).to_have_url(re.compile(r"view=level&stream=[0-9a-f-]+&level=warning$"))
    lines = page.locator(".bt-log-row .bt-log-text")
    expect(lines).to_have_text(["WARN slow", "ValueError: no"])
    expect(level).to_be_focused()
    page.keyboard.press("E")
    expect(lines).to_have_text(["ValueError: no"])
    expect(page).to_have_url(re.compile("level=error$"))
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.reload()
    expect(lines).to_have_text(["ValueError: no"])
    page.locator(".bt-log-row a.bt-log-num").click()
    expect(page.locator("#L4.is-chosen")).to_contain_text("ValueError: no")
    page.go_back()
    level.focus()
    page.keyboard.press("A")
    expect(page.locator("#L5")).to_be_visible()
    expect(page.locator(".bt-log-row:not(.bt-log-row--note)")).to_have_count(5)
    expect(level).to_have_value("all")


def test_a_level_chosen_before_the_scripts_are_there_counts(page: Page, demo: Demo) -> None:
    job = demo.script("echo WARN slow; echo ValueError: no")
    demo.wait(job, "succeeded")
    demo.stream(job)

    def late(route: Route) -> None:
        page.locator("[data-log-level]").select_option("error")
        route.continue_()

    page.route(re.compile(r"/log-merged[^/]*\.js"), late)
    open_log(page, job, "?view=level&level=warning")
    expect(page.locator(".bt-log-row .bt-log-text")).to_have_text(["ValueError: no"])


def test_a_running_log_read_by_level_grows_and_says_when_it_has_none(page: Page, demo: Demo) -> None:
    job = demo.script("echo fine; sleep 6; echo ValueError: late; sleep 60")
    demo.wait(job, "running")
    open_log(page, job, "?view=level&level=error")
    expect(page.get_by_text("No line of this log is of this kind.")).to_be_visible()
    expect(page.locator(".bt-log-row .bt-log-text")).to_have_text(["ValueError: late"], timeout=30_000)
    expect(page.get_by_text("No line of this log is of this kind.")).to_be_hidden()
    demo.cancel(job)


TWINS = """
from portal.clusters.specs import ContainerRef
from portal.logs import services
from portal.logs.specs import Record
for life, text in ((1, b"\\x1b[31mred from here"), (2, b"plain")):
    ref = ContainerRef(cluster="default", namespace="n", pod=f"twin-{life}", pod_uid=f"JOB-{life}", container="main")
    stream = services.open_stream(job_id="JOB", attempt_number=1, ref=ref, pod_index=0)
    records = [Record(life, text + b"\\n"), Record(life + 10, b"second of %d\\n" % life)]
    services.append(stream_id=stream.pk, first_line=1, records=records)
    services.complete(stream_id=stream.pk)
"""


def test_a_replaced_pod_keeps_its_colours_to_itself(page: Page, demo: Demo) -> None:
    """Same rank, same attempt: its tag is another one, and what it switched on does not colour the other's lines."""
    job = demo.script("echo own")
    demo.wait(job, "succeeded")
    demo.stream(job)
    demo.manage("shell", "-c", TWINS.replace("JOB", job))
    page.goto(f"/teams/vision/jobs/{job}/log/?view=merged")
    first, second = (page.locator(".bt-log-row", has_text=f"second of {life}") for life in (1, 2))
    expect(first).to_be_visible()
    assert first.locator(".bt-log-rank").inner_text() != second.locator(".bt-log-rank").inner_text()
    expect(first.locator(".ansi-red-fg")).to_have_count(1)
    expect(second.locator(".ansi-red-fg")).to_have_count(0)


@pytest.mark.parametrize("view", ["one", "merged", "side"])
def test_no_view_scrolls_sideways_on_a_phone(page: Page, sweep: str, view: str) -> None:
    page.set_viewport_size({"width": 360, "height": 740})
    page.goto(f"/teams/vision/jobs/{sweep}/log/?view={view}")
    expect(page.locator(".bt-log-row").first).to_be_attached()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
