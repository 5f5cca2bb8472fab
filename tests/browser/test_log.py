"""The log in a real browser: live, bounded, in step after a lost connection, and never anything but text."""

import re
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from portal.logs.policy import display_text
from tests.browser.conftest import Complaints
from tests.browser.demo import Demo, wait_until

# Every socket of the page, so that a test can drop them as a network does.
KEEP_SOCKETS = """(() => {
  window.sockets = [];
  const Real = window.WebSocket;
  window.WebSocket = class extends Real { constructor(...args) { super(...args); window.sockets.push(this); } };
})()"""
ROWS = """() => [...document.querySelectorAll(".bt-log-row[id]")].map((row) => [
  Number(row.id.slice(1)), row.querySelector(".bt-log-text").textContent])"""
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|[\x00-\x08\x0b-\x1f\x7f]")
EVIL = "<script>window.hurt=1</script><img src=x onerror=window.hurt=2>"


def rows(page: Page) -> list[tuple[int, str]]:
    return [(n, text) for n, text in page.evaluate(ROWS)]


def numbers(page: Page) -> list[int]:
    return [n for n, _ in rows(page)]


def shown(text: str) -> str:
    """What a screen shows of a line: its last state, without the sequences that colour it."""
    return ESCAPES.sub("", re.sub(r".\x08", "", display_text(text)))


def sockets(page: Page) -> int:
    """How many the page has opened so far."""
    return int(page.evaluate("window.sockets.length"))


def open_log(page: Page, job: str, anchor: str = "") -> None:
    page.goto(f"/teams/vision/jobs/{job}/log/{anchor}")


def wait_for_lines(page: Page, count: int) -> None:
    expect(page.locator("[data-log-count]")).to_have_text(
        f"{count:,} line{'' if count == 1 else 's'}, complete", timeout=60_000
    )


def test_case_03_a_dropped_socket_brings_each_line_once(context: BrowserContext, demo: Demo) -> None:
    """The socket is closed under the page, then the whole network goes for a moment; nothing is doubled or lost."""
    job = demo.python("import time\nfor n in range(1, 151):\n    print('tick', n, flush=True)\n    time.sleep(0.04)")
    page, complaints = context.new_page(), Complaints()
    complaints.expected = ["ERR_INTERNET_DISCONNECTED", "WebSocket connection"]
    complaints.listen(page)
    page.add_init_script(KEEP_SOCKETS)
    demo.wait(job, "running", "succeeded")
    open_log(page, job)
    expect(page.locator("#L20")).to_be_visible()
    page.evaluate("window.sockets.forEach((socket) => socket.close())")
    expect(page.locator("#L60")).to_be_visible()
    context.set_offline(True)
    page.evaluate("window.sockets.forEach((socket) => socket.close())")
    before = numbers(page)[-1]
    wait_until(lambda: sockets(page) >= 5, "the page tries again while the network is away")
    context.set_offline(False)
    wait_for_lines(page, 150)
    assert rows(page) == [(n, f"tick {n}") for n in range(1, 151)]
    assert before < 150, "the network went before the end"
    assert [line["text"] for line in demo.lines(demo.stream(job))] == [f"tick {n}" for n in range(1, 151)]
    assert complaints.unexpected() == []


def test_case_03_a_finished_log_is_not_read_a_second_time(page: Page, demo: Demo) -> None:
    page.add_init_script(KEEP_SOCKETS)
    job = demo.script("for n in 1 2 3; do echo line $n; done; exit 3")
    demo.wait(job, "failed")
    demo.stream(job)
    open_log(page, job)
    wait_for_lines(page, 3)
    expect(page.locator(".bt-log-row--note")).to_have_text("end of the log")
    assert page.evaluate("window.sockets.filter((socket) => socket.url.includes('/streams/')).length") == 0
    page.evaluate("window.sockets.forEach((socket) => socket.close())")
    wait_until(lambda: sockets(page) >= 2, "the job's socket is open again")
    assert rows(page) == [(1, "line 1"), (2, "line 2"), (3, "line 3")]


@pytest.mark.parametrize("when", ["live", "late"])
def test_case_13_markup_in_a_log_is_text(page: Page, demo: Demo, when: str) -> None:
    """Plain and inside a colour; as it comes by socket, as the page brings it, and as the unfinished line."""
    texts = (f"{EVIL}\n", f"\x1b[31m{EVIL}\x1b[0m\n", EVIL)
    program = "\n".join(f"print({text!r}, end='', flush=True)" for text in texts)
    job = demo.python(f"import time\ntime.sleep(1.5)\n{program}\ntime.sleep(1.5)" if when == "live" else program)
    if when == "late":
        demo.wait(job)
        demo.stream(job)
    open_log(page, job)
    if when == "live":
        expect(page.locator(".is-open .bt-log-text")).to_have_text(EVIL)
    wait_for_lines(page, 3)
    assert rows(page) == [(n, EVIL) for n in (1, 2, 3)]
    expect(page.locator("#L2 .ansi-red-fg")).to_have_text(EVIL)
    assert page.evaluate("document.querySelectorAll('.bt-log script, .bt-log img').length") == 0
    assert page.evaluate("window.hurt") is None


AWKWARD = """
import sys
out = sys.stdout.buffer
for n in range(200):
    out.write(b"line %d\\n" % n)
    if n % 7 == 0: out.write(b"\\n")
out.write("größe 日本語 🚀\\n".encode())
out.write(b"broken \\xff\\xfe bytes\\n")
out.write(b"nul \\0 and bell \\x07 and back\\x08space\\n")
out.write(b"tab\\there\\n")
out.write(b"\\x1b[1;32mbold green\\x1b[0m plain \\x1b[38;5;208mmany\\x1b[0m \\x1b]0;title\\x07after\\n")
out.write(b"".join(b"\\r%3d %%" % n for n in range(101)) + b"\\n")
out.write(b"carriage return at the end\\r\\n")
out.write(b"   spaces   kept   \\n")
out.write(b"x" * 262144 + b"\\n")
out.write(b"<b>&amp;</b>\\n")
out.write(b"the last one has no end")
"""


def test_case_47_screen_api_and_download_hold_the_same_lines(page: Page, demo: Demo) -> None:
    job = demo.python(AWKWARD)
    demo.wait(job, "succeeded")
    stream = demo.stream(job)
    lines = demo.lines(stream)
    download = demo.read(f"/api/v1/streams/{stream}/download/")
    open_log(page, job)
    wait_for_lines(page, len(lines))
    page.locator(".bt-log").press("Home")
    expect(page.locator("#L1")).to_be_visible()
    wait_until(lambda: len(rows(page)) == len(lines), "every line is on the screen")
    assert [line["text"] for line in lines] == [
        part.decode("utf-8", "replace") for part in download.removesuffix(b"\n").split(b"\n")
    ]
    assert rows(page) == [(line["n"], shown(line["text"])) for line in lines]
    # By plain GET the page downloads the very same bytes.
    with page.expect_download() as found:
        page.get_by_role("link", name="Download").click()
    assert found.value.path().read_bytes() == download


@pytest.fixture(scope="module")
def long_log(demo: Demo) -> str:
    job = demo.script("seq 1 100000")
    demo.wait(job, "succeeded")
    demo.stream(job)
    return job


def test_case_51_a_hundred_thousand_lines_are_all_in_reach_and_few_in_the_page(
    page: Page, demo: Demo, long_log: str
) -> None:
    open_log(page, long_log)
    wait_for_lines(page, 100_000)
    expect(page.locator("#L100000")).to_be_in_viewport()
    page.evaluate(LATENCY)
    page.locator(".bt-log").press("l")
    page.locator("#log-line").fill("50000")
    page.locator("#log-line").press("Enter")
    expect(page.locator("#L50000")).to_be_in_viewport()
    expect(page.locator("#L50000")).to_have_class(re.compile("is-chosen"))
    assert page.url.endswith("#L50000")
    page.locator(".bt-log").press("Home")
    expect(page.locator("#L1")).to_be_in_viewport()
    # The scroll bar stands for the whole: its middle is the middle.
    page.evaluate(
        "(() => { const box = document.querySelector('.bt-log'); box.scrollTop = box.scrollHeight * 0.25; })()"
    )
    expect(page.locator("#L25010")).to_be_visible()
    for _ in range(40):
        page.mouse.move(600, 500)
        page.mouse.wheel(0, 1500)
        page.wait_for_timeout(15)
    wait_until(lambda: consecutive(page) and len(numbers(page)) > 500, "the window has no hole")
    assert len(numbers(page)) <= 2500
    assert all(int(text) == n for n, text in rows(page))
    page.locator(".bt-log").press("End")
    expect(page.locator("#L100000")).to_be_in_viewport()
    assert page.evaluate("window.slowest") < 1500, "milliseconds between two frames, on a busy machine"


LATENCY = """() => {
  window.slowest = 0;
  let last = performance.now();
  const beat = () => {
    const now = performance.now();
    window.slowest = Math.max(window.slowest, now - last);
    last = now;
    requestAnimationFrame(beat);
  };
  requestAnimationFrame(beat);
}"""


def consecutive(page: Page) -> bool:
    found = numbers(page)
    return found == list(range(found[0], found[0] + len(found)))


def test_a_link_to_a_line_opens_there(page: Page, long_log: str) -> None:
    open_log(page, long_log, "#L31337")
    expect(page.locator("#L31337")).to_be_in_viewport()
    expect(page.locator("#L31337 .bt-log-text")).to_have_text("31337")
    expect(page.locator("#L31337")).to_have_class(re.compile("is-chosen"))
    open_log(page, long_log, "#L99999999")
    page.reload()
    expect(page.locator("#L100000")).to_have_class(re.compile("is-chosen"))


def top_line(page: Page) -> Any:
    """Which line is at the top of the box, and where exactly."""
    return page.evaluate(TOP_LINE)


TOP_LINE = """() => {
  const edge = document.querySelector(".bt-log").getBoundingClientRect().top;
  const row = [...document.querySelectorAll(".bt-log-row[id]")].find((it) => it.getBoundingClientRect().bottom > edge);
  return [row.id, Math.round(row.getBoundingClientRect().top)];
}"""


def test_following_ends_with_a_scroll_up_and_nothing_moves_then(page: Page, demo: Demo) -> None:
    job = demo.python("import time\nfor n in range(4000):\n    print('line', n + 1, flush=True)\n    time.sleep(0.005)")
    demo.wait(job, "running")
    page.goto(f"/teams/vision/jobs/{job}/")
    expect(page.locator("#L80")).to_be_attached()
    follow = page.get_by_role("switch", name="Follow")
    expect(follow).to_be_checked()
    page.locator(".bt-log").hover()
    page.mouse.wheel(0, -600)
    expect(follow).not_to_be_checked()
    more = page.get_by_role("button", name=re.compile(r"^[\d,]+ new lines?$"))
    expect(more).to_be_visible()
    before, waiting = top_line(page), more.inner_text()
    wait_until(lambda: more.inner_text() != waiting, "new lines are counted")
    page.wait_for_timeout(400)
    assert top_line(page) == before
    more.click()
    expect(follow).to_be_checked()
    expect(more).to_be_hidden()
    wait_until(lambda: page.evaluate(AT_END), "the log sticks to its end")
    demo.cancel(job)


AT_END = """() => {
  const box = document.querySelector(".bt-log");
  return box.scrollHeight - box.scrollTop - box.clientHeight < 4;
}"""


NO_SOCKETS = """(() => {
  window.WebSocket = class {
    static OPEN = 1;
    readyState = 3;
    constructor() { setTimeout(() => this.onclose?.({ code: 1006 })); }
    close() {}
  };
})()"""


def test_where_no_socket_gets_through_state_and_log_come_all_the_same(page: Page, demo: Demo) -> None:
    """By plain requests, a few seconds later; the clock is a fast one here."""
    job = demo.script("for n in 1 2 3; do echo line $n; sleep 1; done")
    page.clock.install()
    page.add_init_script(NO_SOCKETS)
    page.goto(f"/teams/vision/jobs/{job}/")

    def later() -> bool:
        page.clock.fast_forward(1000)
        return bool(page.locator(".bt-log-row--note").count())

    wait_until(later, "the end of the log is there")
    assert rows(page) == [(1, "line 1"), (2, "line 2"), (3, "line 3")]
    expect(page.locator("#job-badge")).to_have_text("Succeeded")


def test_times_and_wrap_are_the_readers_choice_and_stay(page: Page, demo: Demo) -> None:
    job = demo.script("echo hello; echo " + "long " * 400)
    demo.wait(job, "succeeded")
    demo.stream(job)
    open_log(page, job)
    tall = page.locator("#L2").bounding_box()["height"]  # type: ignore[index]
    page.get_by_role("button", name="Wrap").click()
    assert page.locator("#L2").bounding_box()["height"] < tall  # type: ignore[index]
    page.get_by_role("button", name="Times").click()
    expect(page.locator("#L1 .bt-log-time")).to_have_text(re.compile(r"^\d\d:\d\d:\d\d$"))
    page.reload()
    expect(page.locator("#L1 .bt-log-time")).to_be_visible()
    expect(page.get_by_role("button", name="Wrap")).to_have_attribute("aria-pressed", "false")


def test_each_run_of_an_array_has_its_log(page: Page, demo: Demo) -> None:
    job = demo.submit("array", "two runs", runs=2, epochs=1, seconds_per_epoch=0.1)
    demo.wait(job, "succeeded")
    page.goto(f"/teams/vision/jobs/{job}/")
    expect(page.locator("#job-runs tbody tr")).to_have_count(2)
    page.locator("#log-stream").select_option(page.locator("option", has_text="run 0").get_attribute("value"))
    page.wait_for_url(re.compile(r"\?stream="))
    expect(page.locator("#job-log")).to_contain_text("Run 0, one of 2")
    page.locator("#job-runs tbody tr").last.get_by_role("link").click()
    expect(page.locator("#job-log")).to_contain_text("Run 1, one of 2")
