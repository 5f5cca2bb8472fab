"""A real Chromium in front of the real demo. Nothing here touches the suite's own database.

Playwright's loop is that of the main thread while it runs, so it is started for this folder and stopped behind it.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, ViewportSize, sync_playwright

from tests.browser.demo import PASSWORD, Demo
from tests.support.debian import find

QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
DESKTOP: ViewportSize = {"width": 1440, "height": 900}
PHONE: ViewportSize = {"width": 360, "height": 740}


@pytest.fixture(scope="package")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    running = Demo(tmp_path_factory.mktemp("demo"))
    yield running
    running.close()


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find("chromium"), args=QUIET)
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def member_state(chromium: Browser, demo: Demo, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cookies of `member`, signed in once for all."""
    context = chromium.new_context()
    sign_in(context.new_page(), demo, "member")
    path = tmp_path_factory.mktemp("state") / "member.json"
    context.storage_state(path=path)
    context.close()
    return path


class Complaints:
    """What a page's console and policy complained of. `expected` are patterns of what a test provokes itself."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self.expected: list[str] = []

    def listen(self, page: Page) -> None:
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.found.append(f"error: {error}"))

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.found.append(f"{message.type}: {message.text} ({message.location.get('url', '')})")

    def unexpected(self) -> list[str]:
        return [text for text in self.found if not any(re.search(pattern, text) for pattern in self.expected)]


@pytest.fixture
def complaints() -> Complaints:
    return Complaints()


@pytest.fixture
def context(chromium: Browser, member_state: Path, demo: Demo) -> Iterator[BrowserContext]:
    """A browser of `member`, who is signed in."""
    made = chromium.new_context(storage_state=member_state, viewport=DESKTOP, base_url=demo.url)
    made.set_default_timeout(20_000)
    yield made
    made.close()


@pytest.fixture
def page(context: BrowserContext, complaints: Complaints) -> Iterator[Page]:
    """A page of which nobody may complain: no script error, nothing that the content policy refused."""
    made = context.new_page()
    complaints.listen(made)
    yield made
    assert complaints.unexpected() == []


def sign_in(page: Page, demo: Demo, who: str) -> None:
    page.goto(f"{demo.url}/accounts/login/")
    page.get_by_label("E-mail or user name").fill(who)
    page.locator("input[name=password]").fill(PASSWORD)
    page.locator("button[type=submit]").click()
    page.wait_for_url(f"{demo.url}/")
