"""One researcher's way: sign in, submit, watch, read the cost, run it again, stop another. In a real browser."""

import re

from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import DESKTOP, Complaints, sign_in
from tests.browser.demo import Demo, wait_until

FORM = "/teams/vision/submit/train-small-model/"
# Notes each state that the badge shows, and would be gone after a reload.
NOTE_STATES = """() => {
  window.seen = [];
  const note = () => {
    const word = document.getElementById("job-badge")?.textContent.trim();
    if (word && window.seen.at(-1) !== word) window.seen.push(word);
  };
  note();
  new MutationObserver(note).observe(document.body, { subtree: true, childList: true, characterData: true });
}"""
OPEN_LINE = """() => ({
  rows: document.querySelectorAll(".bt-log-row").length,
  text: document.querySelector(".bt-log-row.is-open .bt-log-text")?.textContent || "",
  height: document.querySelector(".bt-log-row.is-open")?.offsetHeight || 0,
})"""
FOCUS = """() => {
  const it = document.activeElement;
  const box = it.getBoundingClientRect();
  return [it.tagName.toLowerCase(), it.name || it.innerText || "", box.top >= 0 && box.bottom <= innerHeight];
}"""
BLOCKER = {"script": "sleep 300", "gpu": {"flavor": "h100", "count": 4}}


def badge(page: Page) -> str:
    return page.locator("#job-badge").inner_text().strip()


def submit_training(page: Page, name: str, *, epochs: int, seconds: float = 0.5) -> None:
    page.goto(FORM)
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_label("Epochs").fill(str(epochs))
    page.get_by_label("Seconds per epoch").fill(str(seconds))
    page.locator("input[name='gpu.flavor'][value=h100]").check()
    page.get_by_role("button", name="Submit job").first.click()
    page.wait_for_url(re.compile(r"/teams/vision/jobs/[0-9a-f-]{36}/$"))


def test_a_newcomer_watches_the_first_job_from_the_queue_to_its_end(chromium: Browser, demo: Demo) -> None:
    """Also case 9: the progress bar is one line that changes in place."""
    blocker = demo.submit("script", "holds every H100", queue="gpu", **BLOCKER)
    demo.wait(blocker, "running")
    context = chromium.new_context(viewport=DESKTOP, base_url=demo.url)
    page, complaints = context.new_page(), Complaints()
    complaints.listen(page)
    sign_in(page, demo, "member")
    submit_training(page, "my first job", epochs=3, seconds=2)
    page.evaluate(NOTE_STATES)
    expect(page.locator("#job-live")).to_contain_text("No room now: 1 H100 80 GB (pretended) short")
    expect(page.locator("#job-live")).to_contain_text("Asks")
    expect(page.locator("#job-place")).to_contain_text("This job")

    demo.cancel(blocker)
    expect(page.locator("#job-badge")).to_have_text("Running")
    expect(page.locator(".bt-log-row").first).to_contain_text("Training: 400 points")
    seen: set[str] = set()
    rows: dict[str, set[int]] = {}

    def watch() -> bool:
        now = page.evaluate(OPEN_LINE)
        epoch = re.match(r"epoch \d", now["text"])
        if epoch:
            assert now["height"] < 30, "the bar is one row high"
            seen.add(now["text"])
            rows.setdefault(epoch[0], set()).add(now["rows"])
        return badge(page) == "Succeeded"

    wait_until(watch, "the job succeeds before the reader's eyes")
    assert len(seen) >= 5, seen
    assert all(len(counts) == 1 for counts in rows.values()), rows
    passing = {"Submitted", "Starting"}  # too short to be seen for sure
    assert [word for word in page.evaluate("window.seen") if word not in passing] == ["Queued", "Running", "Succeeded"]
    expect(page.locator("[data-log-count]")).to_have_text("6 lines, complete")
    expect(page.locator("#job-live")).to_contain_text("Succeeded after")
    expect(page.locator("#job-cost .bt-figure--lead")).to_contain_text("€0.0")
    expect(page).to_have_title("Succeeded · my first job · Beamtime")
    assert page.locator("#favicon").get_attribute("href").endswith("favicon-succeeded.svg")  # type: ignore[union-attr]
    assert complaints.unexpected() == []
    context.close()


def test_it_runs_again_with_one_field_changed(page: Page, demo: Demo) -> None:
    submit_training(page, "to be changed", epochs=1, seconds=0.2)
    page.get_by_role("link", name="Clone and edit").first.click()
    page.wait_for_url(re.compile(r"/submit/train-small-model/\?from="))
    expect(page.get_by_label("Name", exact=True)).to_have_value("to be changed")
    expect(page.get_by_label("Seconds per epoch")).to_have_value("0.2")
    page.get_by_label("Epochs").fill("2")
    page.get_by_role("button", name="Submit job").first.click()
    page.wait_for_url(re.compile(r"/teams/vision/jobs/[0-9a-f-]{36}/$"))
    expect(page.locator("#job-facts")).to_contain_text("Epochs")
    expect(page.locator("#job-badge")).to_have_text("Succeeded", timeout=30_000)
    expect(page.locator("#job-log")).to_contain_text("epoch 2/2")


def test_run_again_makes_the_same_once_more(page: Page, demo: Demo) -> None:
    job = demo.submit("train-small-model", "again, please", epochs=1, seconds_per_epoch=0.1)
    demo.wait(job, "succeeded")
    page.goto(f"/teams/vision/jobs/{job}/")
    page.get_by_role("button", name="Run again").click()
    page.wait_for_url(lambda url: "/jobs/" in url and job not in url)
    expect(page.locator("#job-facts")).to_contain_text(f"Again after{job[:8]}")
    expect(page.locator(".bt-toast")).to_contain_text("“again, please” is sent again.")


def test_a_running_job_is_stopped_after_a_question(page: Page, demo: Demo) -> None:
    job = demo.script("echo here; sleep 300", "to be stopped")
    demo.wait(job, "running")
    page.goto(f"/teams/vision/jobs/{job}/")
    page.evaluate(NOTE_STATES)
    page.get_by_role("button", name="Stop").first.click()
    dialog = page.get_by_role("dialog", name="Stop “to be stopped”?")
    expect(dialog).to_contain_text("It has run for")
    expect(dialog.get_by_role("button", name="Keep it running")).to_be_focused()
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(page.locator("#job-badge")).to_have_text("Running")
    page.get_by_role("button", name="Stop").first.click()
    dialog.get_by_role("button", name="Stop the job").click()
    expect(page.locator("#job-badge")).to_have_text("Cancelled", timeout=20_000)
    expect(page.locator("#job-live")).to_contain_text("Cancelled by member")
    expect(page.get_by_role("button", name="Stop")).to_have_count(0)


def test_case_19_a_double_click_on_submit_is_one_job(page: Page, demo: Demo) -> None:
    page.goto("/teams/vision/submit/script/")
    page.get_by_label("Name", exact=True).fill("clicked twice")
    page.get_by_label("Script", exact=True).fill("echo once")
    page.get_by_role("button", name="Submit job").first.dblclick()
    page.wait_for_url(re.compile(r"/teams/vision/jobs/[0-9a-f-]{36}/$"))
    names = [job["name"] for job in demo.api("jobs/?limit=50")["results"]]
    assert names.count("clicked twice") == 1


def test_a_job_is_submitted_by_keyboard_alone(page: Page, demo: Demo) -> None:
    page.goto("/")
    page.keyboard.press("g")
    page.keyboard.press("s")
    page.wait_for_url("**/teams/vision/submit/")
    walk_to(page, "a", "Script")
    page.keyboard.press("Enter")
    page.wait_for_url("**/submit/script/")
    walk_to(page, "input", "job.name")
    page.keyboard.type("by keyboard")
    walk_to(page, "textarea", "script")
    page.keyboard.type("for n in 1 2 3; do echo line $n; sleep 0.3; done; sleep 2")
    page.keyboard.press("Control+Enter")
    page.wait_for_url(re.compile(r"/teams/vision/jobs/[0-9a-f-]{36}/$"))
    expect(page.locator("h1")).to_contain_text("by keyboard")
    expect(page.locator(".bt-log-row[id]")).to_have_count(3)
    follow = page.get_by_role("switch", name="Follow")
    expect(follow).to_be_checked()
    page.keyboard.press("f")
    expect(follow).not_to_be_checked()
    page.keyboard.press("l")
    expect(page.locator("#log-line")).to_be_focused()
    page.keyboard.type("2")
    page.keyboard.press("Enter")
    expect(page.locator("#L2")).to_have_class(re.compile("is-chosen"))
    assert page.url.endswith("#L2")
    page.keyboard.press("w")
    expect(page.get_by_role("button", name="Wrap")).to_have_attribute("aria-pressed", "false")
    page.keyboard.press("w")


def walk_to(page: Page, tag: str, name: str, most: int = 60) -> None:
    """Tab until the element with this name or these words has the focus, and see that it shows."""
    for _ in range(most):
        page.keyboard.press("Tab")
        here = page.evaluate(FOCUS)
        if here[0] == tag and here[1].strip().startswith(name):
            assert here[2], f"{name} has the focus and is out of sight"
            return
    raise AssertionError(f"the focus never came to {tag} {name}")


def test_the_final_cost_comes_by_itself(page: Page, demo: Demo) -> None:
    """A job that ends while its page is open: the note becomes final without a reload."""
    job = demo.script("sleep 2", gpu={"flavor": "h100", "count": 1})
    page.goto(f"/teams/vision/jobs/{job}/")
    expect(page.locator("#job-cost")).to_contain_text("Nothing changes it any more.", timeout=40_000)
    expect(page.locator("#job-cost")).to_contain_text("at €2.40 per GPU-hour")
