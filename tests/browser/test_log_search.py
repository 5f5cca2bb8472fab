"""Search, errors, gaps, links and signs of a log in a real browser."""

import re
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.demo import Demo, wait_until
from tests.browser.test_log import open_log, rows, wait_for_lines

PROGRAM = r"""
for n in range(1, 30001):
    if n % 5000 == 0: print(f"\x1b[36mINFO\x1b[0m saving check\x1b[1mpoint\x1b[0m {n}")
    elif n == 12345: print("ValueError: the loss is NaN")
    elif n == 23456: print("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB")
    else: print(f"step {n} loss {n % 97}")
"""
CHECKPOINTS = [5000, 10000, 15000, 20000, 25000, 30000]


@pytest.fixture(scope="module")
def training(demo: Demo) -> str:
    job = demo.python(PROGRAM)
    demo.wait(job, "succeeded")
    demo.stream(job)
    return job


def now(page: Page) -> int:
    """The line of the current hit, once it is in view."""
    current = page.locator(".bt-log-row.is-now")
    expect(current).to_be_in_viewport()
    return int((current.get_attribute("id") or "L0")[1:])


def look(page: Page, words: str) -> Any:
    field = page.get_by_role("searchbox", name="Search in this log")
    field.fill(words)
    field.press("Enter")
    return page.locator("[data-log-hits]")


def test_from_hit_to_hit_over_the_whole_log(page: Page, training: str) -> None:
    """In both directions, by key and by button, round the end; marks in view, colours inside a word do not hide it."""
    open_log(page, training)
    wait_for_lines(page, 30_000)
    page.locator(".bt-log").press("Home")
    expect(page.locator("#L1")).to_be_in_viewport()
    hits = look(page, "CHECKPOINT")
    expect(hits).to_have_text("1 of 6")
    seen = [now(page)]
    field = page.get_by_role("searchbox", name="Search in this log")
    for k in range(2, 7):
        field.press("Enter")
        expect(hits).to_have_text(f"{k} of 6")
        seen.append(now(page))
    assert seen == CHECKPOINTS
    assert page.locator(".is-now mark").all_inner_texts() == ["check", "point"]
    field.press("Enter")
    expect(hits).to_have_text("1 of 6")
    field.press("Shift+Enter")
    expect(hits).to_have_text("6 of 6")
    page.locator(".bt-log").focus()
    page.keyboard.press("Shift+N")
    expect(hits).to_have_text("5 of 6")
    page.keyboard.press("n")
    expect(hits).to_have_text("6 of 6")
    page.get_by_role("button", name="Previous hit").click()
    expect(hits).to_have_text("5 of 6")
    page.locator(".bt-log").press("Escape")
    expect(hits).to_have_text("")
    expect(page.locator(".bt-log mark, .bt-log .is-hit, .bt-log .is-now")).to_have_count(0)
    look(page, "nothing of the kind")
    expect(hits).to_have_text("not found")


def test_a_regular_expression_is_marked_where_the_server_found_it(page: Page, training: str) -> None:
    open_log(page, training)
    wait_for_lines(page, 30_000)
    page.locator(".bt-log").press("Home")
    expect(page.locator("#L1")).to_be_in_viewport()
    page.get_by_role("button", name="Regular expression").click()
    hits = look(page, r"^step \d{1,2} loss [13]\d?$")
    expect(hits).to_have_text(re.compile(r"^1 of 23$"))
    expect(page.locator("#L10 mark")).to_have_text("step 10 loss 10")
    expect(page.locator("#L20 mark")).to_have_count(0)
    assert now(page) == 1


def test_an_expression_that_would_explode_neither_hangs_the_page_nor_the_portal(
    context: BrowserContext, demo: Demo, training: str
) -> None:
    page = context.new_page()
    open_log(page, training)
    wait_for_lines(page, 30_000)
    page.get_by_role("button", name="Regular expression").click()
    hits = look(page, r"(s+t+e+p+ ?)+(.*)+(.*)+!$")
    expect(hits).to_have_text("not found", timeout=60_000)
    look(page, "(unclosed")
    expect(hits).to_contain_text("not a regular expression")
    look(page, "(?=x)")
    expect(hits).to_contain_text("not possible here")
    assert demo.job(training)["state"] == "succeeded"
    page.close()


def test_new_lines_of_a_running_log_are_counted_too(page: Page, demo: Demo) -> None:
    job = demo.python("import time\nfor n in range(400):\n    print('beat', n, flush=True)\n    time.sleep(0.05)")
    demo.wait(job, "running")
    open_log(page, job)
    expect(page.locator("#L5")).to_be_attached()
    hits = look(page, "beat")
    expect(hits).to_have_text(re.compile(r"^\d+ of \d+$"))
    before = hits.inner_text()
    wait_until(lambda: hits.inner_text() not in ("", before), "the count grows")
    demo.cancel(job)


def test_the_last_error_and_the_one_before_it(page: Page, training: str) -> None:
    open_log(page, training)
    wait_for_lines(page, 30_000)
    button = page.get_by_role("button", name="Last error")
    for line in (23456, 12345):
        button.click()
        expect(page.locator(f"#L{line}")).to_have_class(re.compile("is-chosen"))
        expect(page.locator(f"#L{line}")).to_be_in_viewport()
        assert page.url.endswith(f"#L{line}"), "so it can be sent to a colleague"
    button.click()
    expect(page.get_by_text("No error before this one.")).to_be_visible()


def test_a_failed_job_opens_at_its_first_error(page: Page, demo: Demo) -> None:
    job = demo.python(
        "import sys\nfor n in range(1, 3001): print('step', n)\n"
        "print('Traceback (most recent call last):')\nprint('ValueError: no')\n"
        "for n in range(2000): print('cleaning up', n)\nsys.exit(1)"
    )
    demo.wait(job, "failed")
    demo.stream(job)
    open_log(page, job)
    expect(page.locator("#L3001")).to_have_class(re.compile("is-chosen"))
    expect(page.locator("#L3001")).to_be_in_viewport()
    page.locator(".bt-log").press("End")
    expect(page.locator("#L5002")).to_be_in_viewport()


SIGNS = """
import sys
out = sys.stdout.buffer
out.write("user\\u202egnp.exe\\u202c zero\\u200bwidth\\n".encode())
out.write("שלום עולם 123\\n".encode())
out.write(b"see https://example.org/a_(b)?x=1, http://host/x. or javascript:alert(1) ftp://x data:text/html,x\\n")
out.write(b"\\x1b]8;;javascript:alert(1)\\x07click\\x1b]8;;\\x07 ")
out.write(b"\\x1b]8;;http://evil.example/\\x1b\\\\shown\\x1b]8;;\\x1b\\\\ end\\n")
out.write(b"\\x1b[2J\\x1b[H\\x1b[10;10Hmoved\\x1b]0;title\\x07 \\x1b[?25lhidden\\x1bc\\n")
out.write(b"\\x1b[38;5;208mmany\\x1b[0m \\x1b[38;2;10;200;30mtrue\\x1b[0m \\x1b[30;40mblack\\x1b[0m\\n")
"""


def test_links_are_links_and_signs_are_seen(page: Page, demo: Demo) -> None:
    """Only http(s) can be clicked; what turns or hides text is shown; a terminal's orders have no effect."""
    job = demo.python(SIGNS)
    demo.wait(job, "succeeded")
    demo.stream(job)
    open_log(page, job)
    wait_for_lines(page, 6)
    texts = [text for _, text in rows(page)]
    assert texts[0] == "userU+202Egnp.exeU+202C zeroU+200Bwidth"
    assert texts[1] == "שלום עולם 123"
    assert texts[3].startswith("click ")
    assert texts[3].endswith("end")
    assert texts[4] == "moved hidden"
    links = page.locator(".bt-log-text a")
    assert links.evaluate_all("all => all.map((link) => [link.getAttribute('href'), link.rel])") == [
        ["https://example.org/a_(b)?x=1", "noopener noreferrer nofollow"],
        ["http://host/x", "noopener noreferrer nofollow"],
    ]
    assert page.locator("#L2 .bt-log-text").evaluate("it => getComputedStyle(it).unicodeBidi") == "isolate"
    number = page.locator("#L2 .bt-log-num").bounding_box()
    text = page.locator("#L2 .bt-log-text").bounding_box()
    assert number is not None
    assert text is not None
    assert number["x"] < text["x"], "the number stays at the left"


def test_a_line_is_linked_by_its_number(page: Page, training: str) -> None:
    open_log(page, training, "#L777")
    expect(page.locator("#L777")).to_have_class(re.compile("is-chosen"))
    page.locator("#L779 .bt-log-num").click()
    assert page.url.endswith("#L779")
    expect(page.locator("#L779")).to_have_class(re.compile("is-chosen"))
    expect(page.locator("#L777")).not_to_have_class(re.compile("is-chosen"))


def test_copy_with_and_without_numbers(context: BrowserContext, demo: Demo) -> None:
    context.grant_permissions(["clipboard-read", "clipboard-write"], origin=demo.url)
    page = context.new_page()
    job = demo.script("printf 'one\\ntwo\\nthree\\n'")
    demo.wait(job, "succeeded")
    demo.stream(job)
    open_log(page, job)
    wait_for_lines(page, 3)
    for words, expected in (
        ("Copy with line numbers", "1\tone\n2\ttwo\n3\tthree\n"),
        ("Copy without numbers", "one\ntwo\nthree\n"),
    ):
        page.get_by_label("More about the log").click()
        page.get_by_role("button", name=words).click()
        expect(page.get_by_text("3 lines are copied.").last).to_be_visible()
        assert page.evaluate("navigator.clipboard.readText()") == expected
    page.close()


def test_what_is_missing_stands_between_the_lines(page: Page, demo: Demo) -> None:
    """The gap is noted in the demo's own database, as a reader of the cluster would have done it."""
    job = demo.script("seq 1 20")
    demo.wait(job, "succeeded")
    stream = demo.stream(job)
    demo.manage(
        "shell",
        "-c",
        "from portal.logs.services import note_gap\n"
        f"note_gap(stream_id='{stream}', before_line=11, cause='rotated', after_ns=1795000000000000000, "
        "until_ns=1795000060000000000)",
    )
    open_log(page, job)
    gap = page.locator("#L11 .bt-log-gap")
    expect(gap).to_contain_text("Lines may be missing before line 11: the log was rotated while nobody was reading.")
    expect(gap).to_contain_text(re.compile(r"Between \d\d:\d\d:\d\d and \d\d:\d\d:\d\d\."))
    expect(page.locator("[data-log-gaps]")).to_have_text("but for 1 gap")
    assert len(rows(page)) == 20


def test_the_digest_can_be_copied_once_the_log_is_sealed(page: Page, demo: Demo) -> None:
    job = demo.script("echo sealed")
    demo.wait(job, "succeeded")
    stream = demo.stream(job)
    wait_until(lambda: bool(demo.api(f"streams/{stream}/")["sha256"]), "the log is sealed")
    digest = demo.api(f"streams/{stream}/")["sha256"]
    open_log(page, job)
    button = page.locator("[data-log-digest]")
    expect(button).to_contain_text(f"{digest[:4]}…{digest[-4:]}")
    assert button.get_attribute("title") == digest
