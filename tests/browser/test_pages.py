"""Every page, on a screen and on a phone, in both themes: axe, the console and the content policy have no complaint."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.browser.conftest import DESKTOP, PHONE, Complaints, sign_in
from tests.browser.demo import Demo, wait_until
from tests.browser.test_log import KEEP_SOCKETS

AXE = (Path(__file__).parent / "vendor" / "axe.min.js").read_text(encoding="utf-8")
# Line numbers of a log are 19 px high; "Go to line" does the same (WCAG 2.5.8, equivalent).
RULES = """(only) => axe.run({ exclude: [] }, {
  ...(only ? { runOnly: only } : { runOnly: { type: "tag", values: [
    "wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] } }),
  resultTypes: ["violations"],
}).then((found) => found.violations.flatMap((rule) => rule.nodes
  .filter((node) => !(rule.id === "target-size" && node.html.includes("bt-log-num")))
  .map((node) => `${rule.id}: ${node.html.slice(0, 160)} ${node.failureSummary.slice(0, 300)}`)))"""
OUTSIDE = ["/accounts/login/", "/accounts/password/reset/"]
INSIDE = [
    "/",
    "/teams/vision/",
    "/teams/vision/jobs/",
    "/teams/vision/jobs/?state=lost",
    "/teams/vision/submit/",
    "/teams/vision/submit/train-small-model/",
    "/teams/vision/submit/script/",
    "/teams/vision/costs/",
    "/queues/",
    "/accounts/tokens/",
    "/accounts/2fa/",
    "/accounts/password/change/",
    "/teams/vision/jobs/00000000-0000-0000-0000-000000000000/",
]
PARTS = ["", "log/", "cost/", "events/", "manifest/"]


@pytest.fixture(scope="module")
def jobs(demo: Demo) -> Iterator[dict[str, str]]:
    """One job in each state that a demo can be brought to, by what it is here for."""
    long_name = "ein-überaus-langer-name_ohne-leerzeichen-" + "x" * 60 + " und noch ein Teil"
    made = {
        "running": demo.script("printf 'half a line'; sleep 300", long_name),
        "failed": demo.script("echo why; exit 3", "fails"),
        "succeeded": demo.submit("array", "three runs", runs=3, epochs=1, seconds_per_epoch=0.1),
        "holder": demo.submit(
            "script", "holds all", queue="gpu", script="sleep 300", gpu={"flavor": "h100", "count": 4}
        ),
    }
    demo.wait(made["holder"], "running")
    made["queued"] = demo.submit("train-small-model", "waits", gpu={"flavor": "h100", "count": 2})
    for name, state in (("running", "running"), ("failed", "failed"), ("succeeded", "succeeded"), ("queued", "queued")):
        demo.wait(made[name], state)
    yield made
    for name in ("running", "holder", "queued"):
        demo.cancel(made[name])


def addresses(jobs: dict[str, str]) -> list[str]:
    parts = [f"/teams/vision/jobs/{jobs['succeeded']}/{part}" for part in PARTS]
    return INSIDE + parts + [f"/teams/vision/jobs/{jobs[name]}/" for name in ("queued", "running", "failed")]


def visit(page: Page, address: str) -> None:
    """Go there without the fades of 120 ms, in the middle of which no colour counts."""
    page.emulate_media(reduced_motion="reduce")
    page.goto(address)
    if page.locator("#job-log[data-stream]").count():
        expect(page.locator("[data-log-wrap]")).to_be_visible()


def violations(page: Page) -> list[str]:
    """In the theme that is shown all rules, in the other one those that colours can break."""
    page.evaluate(AXE)
    found: list[str] = page.evaluate(RULES, None)
    page.evaluate("document.documentElement.dataset.bsTheme = 'dark'")
    return found + [f"dark {text}" for text in page.evaluate(RULES, ["color-contrast"])]


SIDEWAYS = """() => {
  const wide = document.documentElement.clientWidth;
  const over = document.documentElement.scrollWidth - wide;
  return over <= 0 ? [] : [`${over} px too wide`, ...[...document.querySelectorAll("body *")].filter(
    (it) => it.getBoundingClientRect().right > wide + 1).slice(0, 3).map((it) => it.outerHTML.slice(0, 120))];
}"""


class Survey:
    """What is wrong with each page: by the rules of axe, by its width on a phone, by the console."""

    def __init__(self) -> None:
        self.rules: dict[str, list[str]] = {}
        self.width: dict[str, list[str]] = {}
        self.complaints = Complaints()
        self.complaints.expected = [r"status of 404"]

    def look(self, page: Page, addresses: list[str]) -> None:
        self.complaints.listen(page)
        for address in addresses:
            page.set_viewport_size(DESKTOP)
            visit(page, address)
            self._note(self.rules, address, violations(page))
            page.set_viewport_size(PHONE)
            self._note(self.width, address, page.evaluate(SIDEWAYS))

    @staticmethod
    def _note(where: dict[str, list[str]], address: str, wrong: list[str]) -> None:
        if wrong:
            where[address] = wrong


@pytest.fixture(scope="module")
def survey(chromium: Browser, member_state: Path, demo: Demo, jobs: dict[str, str]) -> Survey:
    """Each page is visited once."""
    found = Survey()
    for state, places in ((member_state, addresses(jobs)), (None, OUTSIDE)):
        context = chromium.new_context(storage_state=state, base_url=demo.url)
        found.look(context.new_page(), places)
        context.close()
    return found


def test_axe_finds_nothing_on_any_page_in_either_theme(survey: Survey) -> None:
    assert survey.rules == {}


def test_no_page_scrolls_sideways_at_360_pixels(survey: Survey) -> None:
    assert survey.width == {}


def test_no_page_complains_in_the_console(survey: Survey) -> None:
    assert survey.complaints.unexpected() == []


ORDER = """() => ["job-live", "job-log-place", "job-cost", "job-facts"].map(
  (id) => document.getElementById(id).getBoundingClientRect().top)"""


def test_on_a_phone_what_matters_comes_first(page: Page, jobs: dict[str, str], tmp_path: Path) -> None:
    page.set_viewport_size(PHONE)
    page.goto(f"/teams/vision/jobs/{jobs['running']}/")
    order = page.evaluate(ORDER)
    assert order == sorted(order), "the sentence, then the log, the cost, the facts"
    expect(page.get_by_role("button", name="Stop").first).to_be_in_viewport()
    expect(page.get_by_role("button", name="Run again").first).to_be_in_viewport()
    page.screenshot(path=tmp_path / "job-phone.png", full_page=True)


def test_the_theme_is_the_systems_unless_one_chose(page: Page, jobs: dict[str, str], tmp_path: Path) -> None:
    grounds: dict[Literal["light", "dark"], str] = {"light": "rgb(245, 246, 248)", "dark": "rgb(15, 19, 24)"}
    for scheme, ground in grounds.items():
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        page.goto(f"/teams/vision/jobs/{jobs['queued']}/")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == ground
        page.screenshot(path=tmp_path / f"job-{scheme}.png", full_page=True)


def test_a_waiting_page_offers_a_shape_that_starts_now(page: Page, demo: Demo, jobs: dict[str, str]) -> None:
    page.goto(f"/teams/vision/jobs/{jobs['queued']}/")
    row = page.locator("#job-live li", has_text="Take 2 × A100 40 GB (pretended): it would start now.")
    row.get_by_role("link", name="Clone with it").click()
    page.wait_for_url(re.compile(r"shape=a100"))
    expect(page.locator("input[name='gpu.flavor'][value=a100]")).to_be_checked()
    expect(page.locator("input[name='gpu.count']")).to_have_value("2")


def test_a_part_that_is_held_is_not_replaced_under_the_hand(page: Page, demo: Demo, jobs: dict[str, str]) -> None:
    """While the menu is open nothing changes it, and right after it is as true as the rest."""
    job = demo.script("sleep 2", "ends in a moment")
    demo.wait(job, "running")
    page.goto(f"/teams/vision/jobs/{job}/")
    page.locator("#job-more summary").click()
    expect(page.locator("#job-badge")).to_have_text("Succeeded")
    expect(page.locator("#job-more")).to_have_attribute("open", "")
    assert page.get_by_role("button", name="Stop").count() == 1
    page.keyboard.press("Escape")
    page.locator("h1").click()
    page.evaluate("document.activeElement.blur()")
    expect(page.get_by_role("button", name="Stop")).to_have_count(0)


def test_only_what_means_something_else_is_announced(page: Page, demo: Demo) -> None:
    job = demo.script("sleep 1.5", "announced")
    demo.wait(job, "running")
    page.goto(f"/teams/vision/jobs/{job}/")
    expect(page.locator("#job-said")).to_have_text("")
    expect(page.locator("#job-badge")).to_have_text("Succeeded")
    expect(page.locator("#job-said")).to_have_text(re.compile(r"^Succeeded: Succeeded after \d+ s It "))


def test_a_lost_connection_is_said_and_everything_catches_up(context: BrowserContext, demo: Demo) -> None:
    """After 15 s (a fast clock here) a banner says since when; what needs the server waits; then it all comes back."""
    job = demo.script("sleep 300", "stays")
    demo.wait(job, "running")
    page, complaints = context.new_page(), Complaints()
    complaints.expected = ["ERR_INTERNET_DISCONNECTED", "WebSocket connection", "htmx:"]
    complaints.listen(page)
    page.clock.install()
    page.add_init_script(KEEP_SOCKETS)
    page.goto(f"/teams/vision/jobs/{job}/")
    expect(page.locator("#live-mark")).to_have_text("Live")
    context.set_offline(True)
    page.evaluate("window.sockets.forEach((socket) => socket.close())")
    wait_until(lambda: fast(page, "lost"), "the banner is there")
    expect(page.locator("#bt-connection")).to_contain_text("What you see is from then; nothing is lost.")
    expect(page.get_by_role("button", name="Stop").first).to_be_disabled()
    demo.cancel(job)
    demo.wait(job, "cancelled")
    context.set_offline(False)
    wait_until(lambda: fast(page, "live"), "the connection is back")
    expect(page.locator("#bt-connection")).to_be_hidden()
    expect(page.locator("#job-badge")).to_have_text("Cancelled")
    assert complaints.unexpected() == []


def fast(page: Page, state: str) -> bool:
    """Whether the live mark says so yet; if not, two seconds more pass at once."""
    page.clock.fast_forward(2000)
    return page.locator("#live-mark").get_attribute("data-state") == state


def test_the_page_goes_when_the_right_to_see_it_goes(
    context: BrowserContext, chromium: Browser, demo: Demo, jobs: dict[str, str]
) -> None:
    """The lead takes the member out of the team, and nothing of the job stays on the member's screen."""
    page = context.new_page()
    page.goto(f"/teams/vision/jobs/{jobs['running']}/")
    expect(page.locator(".bt-log-row").first).to_contain_text("half a line")
    office = chromium.new_context(viewport=DESKTOP, base_url=demo.url)
    lead = office.new_page()
    sign_in(lead, demo, "lead")
    lead.goto("/teams/vision/")
    post = """([path, fields]) => { const body = new FormData();
      body.append("csrfmiddlewaretoken", document.querySelector("[name=csrfmiddlewaretoken]").value);
      for (const [name, value] of Object.entries(fields)) body.append(name, value);
      return fetch(path, { method: "POST", body }).then((answer) => answer.status); }"""
    try:
        assert lead.evaluate(post, ["/teams/vision/people/remove/", {"username": "member"}]) == 200
        expect(page.locator("main")).to_have_text("This is no longer open to you.")
        assert "half a line" not in page.content()
        assert "überaus" not in page.content()
        assert page.title() == "Beamtime"
    finally:
        lead.evaluate(post, ["/teams/vision/people/add/", {"username": "member", "role": "member"}])
    wait_until(lambda: page.goto("/teams/vision/").status == 200, "the member is back")  # type: ignore[union-attr]
    office.close()
