"""Signing in and out, and the second factor: what a person reads when it goes well and when it does not."""

import re

import pytest
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import TOTP, format_hotp_value, hotp_value, yield_hotp_counters_from_time
from django.core import mail
from django.core.cache import cache
from django.test import Client
from django.urls import reverse

from portal.teams.models import User

PASSWORD = "a-long-enough-secret"


@pytest.fixture(autouse=True)
def _forget_earlier_tries() -> None:
    """The limit of failed tries is counted in the cache, which outlives a test."""
    cache.clear()


@pytest.fixture
def person(member: User) -> User:
    member.set_password(PASSWORD)
    member.email = "member@example.org"
    member.save()
    return member


def words(html: bytes) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html.decode()))


def code_for(secret: str) -> str:
    return str(format_hotp_value(hotp_value(secret, next(yield_hotp_counters_from_time()))))


def sign_in(client: Client, user: User, password: str = PASSWORD) -> None:
    client.post(reverse("account_login"), {"login": user.username, "password": password})


def test_a_wrong_password_says_so_once_and_keeps_the_name(client: Client, person: User) -> None:
    page = client.post(reverse("account_login"), {"login": "member", "password": "wrong"})
    html = page.content.decode()
    assert words(page.content).count("User name and password do not match. After 5 wrong tries") == 1
    assert 'value="member"' in html
    assert 'aria-describedby="sign-in-error"' in html


def test_the_name_and_the_address_both_open_the_account(client: Client, person: User) -> None:
    for login in ("member", "member@example.org"):
        answer = client.post(reverse("account_login"), {"login": login, "password": PASSWORD})
        assert (answer.status_code, answer["Location"]) == (302, "/")
        client.logout()


def test_after_five_wrong_tries_even_the_right_password_waits(client: Client, person: User) -> None:
    for _ in range(5):
        sign_in(client, person, "wrong")
    page = client.post(reverse("account_login"), {"login": "member", "password": PASSWORD})
    assert "Too many wrong tries. Wait 5 min, then sign in again." in words(page.content)


def test_nobody_registers_alone(client: Client, db: None) -> None:
    page = client.get(reverse("account_signup"))
    assert "Accounts come from an administrator of the site." in words(page.content)
    assert "<form" not in page.content.decode()


def test_a_forgotten_password_does_not_tell_who_has_an_account(client: Client, person: User) -> None:
    pages = []
    for address in ("member@example.org", "nobody@example.org"):
        page = client.post(reverse("account_reset_password"), {"email": address}, follow=True)
        pages.append(words(page.content))
    assert pages[0] == pages[1]
    assert "If an account has this address, a link is on its way." in pages[0]
    assert [message.to for message in mail.outbox].count(["member@example.org"]) == 1


def test_signing_out_asks_and_says_that_jobs_go_on(client: Client, person: User) -> None:
    client.force_login(person)
    assert "Jobs go on without you" in words(client.get(reverse("account_logout")).content)
    page = client.post(reverse("account_logout"), follow=True)
    assert "You are signed out." in words(page.content)
    assert client.get("/").status_code == 302


def test_a_second_factor_is_set_up_and_asked_for(client: Client, person: User) -> None:
    sign_in(client, person)
    page = client.get(reverse("mfa_activate_totp"), follow=True)
    assert "This page changes how you sign in, so it asks once more." in words(page.content)
    page = client.post(page.request["PATH_INFO"], {"password": "wrong"})
    assert "This is not your password." in words(page.content)
    client.post(reverse("account_reauthenticate"), {"password": PASSWORD})

    page = client.get(reverse("mfa_activate_totp"))
    secret = re.search(r'id="authenticator_secret" value="([A-Z2-7]+)"', page.content.decode())
    assert secret, "the page shows the secret for those who cannot scan the picture"

    wrong = client.post(reverse("mfa_activate_totp"), {"code": "000000"})
    assert "This code does not fit." in words(wrong.content)
    page = client.post(reverse("mfa_activate_totp"), {"code": code_for(secret[1])}, follow=True)
    assert "10 of 10 left" in words(page.content)
    assert "On: signing in asks for your password and a code." in words(client.get(reverse("mfa_index")).content)

    client.post(reverse("account_logout"))
    answer = client.post(reverse("account_login"), {"login": "member", "password": PASSWORD})
    assert answer["Location"] == reverse("mfa_authenticate")
    assert client.get("/").status_code == 302, "the password alone does not open the portal"
    page = client.post(reverse("mfa_authenticate"), {"code": "000000"})
    assert "This code does not fit." in words(page.content)


def test_a_recovery_code_opens_the_account_once(client: Client, person: User) -> None:
    TOTP.activate(person, "JBSWY3DPEHPK3PXP")
    code = RecoveryCodes.activate(person).get_unused_codes()[0]
    for expected in ("/", None):
        sign_in(client, person)
        answer = client.post(reverse("mfa_authenticate"), {"code": code})
        assert answer.get("Location") == expected
        client.logout()


@pytest.mark.parametrize(
    "name",
    [
        "account_login",
        "account_signup",
        "account_inactive",
        "account_reset_password",
        "account_reset_password_done",
        "account_reset_password_from_key_done",
    ],
)
def test_pages_before_sign_in_stand_in_the_products_own_frame(client: Client, db: None, name: str) -> None:
    page = client.get(reverse(name))
    html = page.content.decode()
    assert page.status_code == 200
    assert html.count("<h1>") == 1
    assert 'class="bt-bare"' in html
    assert "<style" not in html


@pytest.mark.parametrize(
    "name", ["account_change_password", "account_email", "mfa_index", "mfa_activate_totp", "account_reauthenticate"]
)
def test_pages_of_ones_own_account_need_a_sign_in_and_have_one_title(client: Client, person: User, name: str) -> None:
    assert client.get(reverse(name)).status_code == 302
    sign_in(client, person)
    html = client.get(reverse(name), follow=True).content.decode()
    assert html.count("<h1>") == 1
