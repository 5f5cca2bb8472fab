"""A page of Chromium in which the bench's person is signed in."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from playwright.sync_api import Page, sync_playwright

from tests.bench.sites import PASSWORD, PERSON
from tests.support.debian import find


@contextlib.contextmanager
def signed_in(address: str, *scripts: str) -> Iterator[Page]:
    """`scripts` run in every page before its own."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find("chromium"), args=["--no-sandbox"])
        page = browser.new_page()
        for script in scripts:
            page.add_init_script(script)
        page.goto(f"{address}/accounts/login/")
        page.fill("input[name=login]", PERSON)
        page.fill("input[name=password]", PASSWORD)
        page.press("input[name=password]", "Enter")
        page.wait_for_url(lambda url: "/login/" not in url)
        try:
            yield page
        finally:
            browser.close()
