"""What an administrator does to accounts, teams and tokens in the admin."""

from datetime import timedelta

import pytest
from django.test import Client

from portal.audit.models import Entry
from portal.teams import services
from portal.teams.models import Membership, Role, Team, User


@pytest.fixture
def admin(client: Client, admin_user: User) -> Client:
    client.force_login(admin_user)
    return client


def people_form(team: Team, *rows: dict[str, str], kept: int = 0) -> dict[str, str]:
    form = {
        "name": team.name,
        "memberships-TOTAL_FORMS": str(len(rows)),
        "memberships-INITIAL_FORMS": str(kept),
    }
    for index, row in enumerate(rows):
        form |= {f"memberships-{index}-{key}": value for key, value in row.items()}
    return form


def row(membership: Membership, **changes: str) -> dict[str, str]:
    return {"id": str(membership.pk), "user": str(membership.user_id), "role": membership.role, **changes}


def test_a_team_is_made_with_its_first_lead(admin: Client, outsider: User, admin_user: User) -> None:
    form = {
        "name": "Robotics",
        "slug": "robotics",
        "memberships-TOTAL_FORMS": "1",
        "memberships-INITIAL_FORMS": "0",
        "memberships-0-user": str(outsider.pk),
        "memberships-0-role": "lead",
    }
    assert admin.post("/admin/teams/team/add/", form).status_code == 302
    team = Team.objects.get(slug="robotics")
    assert team.memberships.get().role == Role.LEAD
    assert set(Entry.objects.values_list("action", "actor")) == {
        ("team.create", admin_user.pk),
        ("team.add_member", admin_user.pk),
    }


def test_people_change_role_come_and_go_in_one_save(
    admin: Client, team: Team, lead: User, member: User, outsider: User
) -> None:
    of_lead, of_member = (Membership.objects.get(team=team, user=user) for user in (lead, member))
    form = people_form(
        team,
        row(of_lead, DELETE="on"),
        row(of_member, role="lead"),
        {"user": str(outsider.pk), "role": "member"},
        kept=2,
    )
    assert admin.post(f"/admin/teams/team/{team.pk}/change/", form).status_code == 302
    assert dict(team.memberships.values_list("user__username", "role")) == {"member": "lead", "outsider": "member"}
    assert set(Entry.objects.values_list("action", flat=True)) == {
        "team.remove_member",
        "team.change_role",
        "team.add_member",
    }


def test_a_closed_team_takes_nobody_and_the_form_says_why(
    admin: Client, team: Team, outsider: User, admin_user: User
) -> None:
    services.close_team(actor=admin_user, team=team)
    form = people_form(team, {"user": str(outsider.pk), "role": "member"})
    answer = admin.post(f"/admin/teams/team/{team.pk}/change/", form)
    assert "closed and takes no new people" in answer.content.decode()
    assert not team.memberships.exists()


def test_teams_are_closed_and_opened_from_the_list(admin: Client, team: Team, other_team: Team) -> None:
    chosen = {"_selected_action": [team.pk, other_team.pk]}
    admin.post("/admin/teams/team/", {"action": "close", **chosen})
    assert not Team.objects.filter(closed_at=None).exists()
    admin.post("/admin/teams/team/", {"action": "reopen", **chosen})
    assert Team.objects.filter(closed_at=None).count() == 2


def test_neither_teams_nor_accounts_are_deleted(admin: Client, team: Team, member: User) -> None:
    assert admin.post(f"/admin/teams/team/{team.pk}/delete/", {"post": "yes"}).status_code == 403
    assert admin.post(f"/admin/teams/user/{member.pk}/delete/", {"post": "yes"}).status_code == 403


def test_rights_of_an_account_are_changed_and_written_down(admin: Client, member: User, admin_user: User) -> None:
    form = {"username": "member", "email": member.email, "is_active": "on", "is_superuser": "on", "is_auditor": ""}
    assert admin.post(f"/admin/teams/user/{member.pk}/change/", form).status_code == 302
    member.refresh_from_db()
    assert (member.is_superuser, member.is_staff) == (True, True)
    entry = Entry.objects.get(action="account.change")
    assert (entry.actor, entry.before, entry.after) == (admin_user, {"is_superuser": False}, {"is_superuser": True})


def test_a_new_account_is_made_and_written_down_without_its_password(admin: Client) -> None:
    password = "a long and quiet river"
    form = {"username": "nora", "email": "n@example.org", "usable_password": "true"}
    answer = admin.post("/admin/teams/user/add/", {**form, "password1": password, "password2": password})
    assert answer.status_code == 302
    entry = Entry.objects.get(action="account.change")
    assert entry.after["username"] == "nora"
    assert password not in str(Entry.objects.values())


def test_a_password_set_by_an_administrator_is_written_down_without_it(admin: Client, member: User) -> None:
    password = "a long and quiet river"
    form = {"password1": password, "password2": password, "usable_password": "true", "set-password": "1"}
    assert admin.post(f"/admin/teams/user/{member.pk}/password/", form).status_code == 302
    member.refresh_from_db()
    assert member.check_password(password)
    assert Entry.objects.get(action="account.change").after == {"password": "set anew"}


def test_tokens_are_read_and_revoked_but_never_made(admin: Client, member: User) -> None:
    token, text = services.issue_token(user=member, name="laptop", scope="read", lifetime=timedelta(days=1))
    page = admin.get(f"/admin/teams/apitoken/{token.pk}/change/").content.decode()
    assert token.prefix in page
    assert text not in page
    assert token.digest not in page
    assert admin.get("/admin/teams/apitoken/add/").status_code == 403
    admin.post("/admin/teams/apitoken/", {"action": "revoke", "_selected_action": [token.pk]})
    assert services.authenticate_token(text) is None


def test_every_list_and_form_opens(admin: Client, team: Team, member: User) -> None:
    for address in (
        "/admin/teams/team/",
        "/admin/teams/team/add/",
        f"/admin/teams/team/{team.pk}/change/",
        "/admin/teams/user/?q=member",
        "/admin/teams/user/add/",
        f"/admin/teams/user/{member.pk}/change/",
        f"/admin/teams/user/{member.pk}/password/",
        "/admin/teams/apitoken/",
    ):
        assert admin.get(address).status_code == 200, address


@pytest.mark.parametrize("who", ["member", "lead", "auditor"])
def test_nobody_else_gets_in(client: Client, who: str, member: User, lead: User, auditor: User) -> None:
    client.force_login({"member": member, "lead": lead, "auditor": auditor}[who])
    assert client.get("/admin/teams/user/").status_code in (302, 403)
