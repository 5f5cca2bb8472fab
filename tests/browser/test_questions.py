"""What cannot be taken back is asked first."""

from playwright.sync_api import Browser, expect

from tests.browser.conftest import DESKTOP, sign_in
from tests.browser.demo import Demo


def test_a_lead_is_asked_before_a_person_leaves_the_team(chromium: Browser, demo: Demo) -> None:
    context = chromium.new_context(viewport=DESKTOP, base_url=demo.url)
    page = context.new_page()
    sign_in(page, demo, "lead")
    page.goto("/teams/vision/")
    row = page.locator(".bt-rows > li").filter(has_text="Make a lead")
    row.locator("summary").first.click()
    row.get_by_role("button", name="Remove from the team").click()
    dialog = page.get_by_role("dialog", name="Remove member from Vision?")
    dialog.get_by_role("button", name="Change nothing").click()
    expect(dialog).to_be_hidden()
    expect(row).to_be_visible()
    context.close()


def test_a_token_is_revoked_after_a_question(chromium: Browser, demo: Demo) -> None:
    context = chromium.new_context(viewport=DESKTOP, base_url=demo.url)
    page = context.new_page()
    sign_in(page, demo, "outsider")
    page.goto("/accounts/tokens/")
    page.get_by_label("Name").fill("for a question")
    page.get_by_role("button", name="Make the token").click()
    row = page.get_by_role("row", name="for a question")
    row.get_by_role("button", name="Revoke").click()
    dialog = page.get_by_role("dialog", name="Revoke “for a question”?")
    dialog.get_by_role("button", name="Keep it").click()
    expect(row).to_be_visible()
    row.get_by_role("button", name="Revoke").click()
    dialog.get_by_role("button", name="Revoke the token").click()
    expect(row).to_have_count(0)
    context.close()
