"""Who gets what at every address of the pages: one table of route × person; a route without a row fails."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from django.db import transaction
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse

from portal.catalog.services import install_shipped
from portal.jobs import services as jobs
from portal.jobs.models import Job
from portal.jobs.specs import JobRequest
from portal.logs.models import Stream
from portal.teams.models import Membership, Team, User
from tests.factories import Site, make_stream, make_user

# nobody: not signed in; outsider: of another team; colleague: of the team, not the owner of the job.
PEOPLE = ("nobody", "outsider", "colleague", "owner", "lead", "auditor", "admin")
SIGN_IN, FORBIDDEN, MISSING = 302, 403, 404


@dataclass(frozen=True)
class Row:
    """A route: how it is asked, and what each person is answered. `done` is the status for who may."""

    method: str = "get"
    form: tuple[tuple[str, str], ...] = ()
    done: int = 200
    everybody: bool = False
    site_wide: bool = False
    # People of the team or the site who may see the thing, but not do this.
    forbidden: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    def expected(self, person: str) -> int:
        if self.everybody:
            return self.done
        if person == "nobody":
            return SIGN_IN
        if person in self.missing or (person == "outsider" and not self.site_wide):
            return MISSING
        return FORBIDDEN if person in self.forbidden else self.done


_SEES = Row()
_SUBMITS = ("auditor",)
_LEADS_ONLY = ("colleague", "owner", "auditor")
_FORM = (("script", "echo"), ("image", "busybox:1.37"), ("cores", "1"), ("memory", "1 GiB"), ("time_limit", "1 h"))

TABLE: dict[str, Row] = {
    "healthz": Row(everybody=True),
    "readyz": Row(everybody=True),
    "home": Row(site_wide=True),
    "queues": Row(site_wide=True),
    "tokens": Row(site_wide=True),
    "token-revoke": Row("post", site_wide=True, missing=PEOPLE),
    "preferences": Row("post", site_wide=True, done=302),
    "team": _SEES,
    "team-add": Row("post", (("username", "newcomer"), ("role", "member")), 302, forbidden=_LEADS_ONLY),
    "team-role": Row("post", (("username", "owner"), ("role", "lead")), 302, forbidden=_LEADS_ONLY),
    # Leaving is everybody's own; here the owner is the one who goes.
    "team-remove": Row("post", (("username", "owner"),), 302, forbidden=("colleague", "auditor")),
    "jobs": _SEES,
    "jobs-rows": _SEES,
    "job": _SEES,
    "job-log": _SEES,
    "job-download": _SEES,
    "job-archive": _SEES,
    "job-cost": _SEES,
    "job-events": _SEES,
    "job-manifest": _SEES,
    "job-cancel": Row("post", done=302, forbidden=("colleague", "auditor")),
    "job-rerun": Row("post", done=302, forbidden=_SUBMITS),
    "job-clone": Row(done=302, forbidden=_SUBMITS),
    "submit": _SEES,
    "submit-form": Row("post", _FORM, 302, forbidden=_SUBMITS),
    "submit-estimate": Row("post", _FORM, forbidden=_SUBMITS),
    "submit-preview": Row("post", _FORM, forbidden=_SUBMITS),
    "costs": _SEES,
}


def routes(patterns: list[Any]) -> Iterator[URLPattern]:
    """Every route below these, however deep."""
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            yield from routes(pattern.url_patterns)
        else:
            yield pattern


def web_routes() -> dict[str, URLPattern]:
    resolver = next(r for r in get_resolver().url_patterns if getattr(r, "app_name", None) == "web")
    assert isinstance(resolver, URLResolver)
    return {str(route.name): route for route in routes(resolver.url_patterns)}


@dataclass(frozen=True)
class World:
    people: dict[str, User | None]
    team: Team
    job: Job
    stream: Stream

    def client(self, person: str) -> Client:
        client, user = Client(), self.people[person]
        if user is not None:
            client.force_login(user)
        return client

    def address(self, name: str) -> str:
        known = {"team": self.team.slug, "job": self.job.pk, "stream": self.stream.pk, "template": "script", "token": 9}
        wanted = web_routes()[name].pattern.converters
        team_too = {"team"} if name.startswith(("team", "job", "submit", "costs")) else set()
        return reverse(f"web:{name}", kwargs={key: known[key] for key in {*wanted, *team_too}})


@pytest.fixture
def world(site: Site, team: Team, lead: User, outsider: User, auditor: User, admin_user: User) -> World:
    install_shipped()
    owner, colleague = make_user("owner"), make_user("colleague")
    make_user("newcomer")
    for user in (owner, colleague):
        Membership.objects.create(team=team, user=user)
    values = {"script": "echo the plan of vision"}
    job = jobs.submit(JobRequest(team=team, user=owner, template="script", values=values, name="the plan")).job
    people = {"nobody": None, "outsider": outsider, "colleague": colleague, "owner": owner, "lead": lead}
    return World({**people, "auditor": auditor, "admin": admin_user}, team, job, make_stream(job))


@pytest.mark.django_db
def test_every_route_has_a_row_and_every_row_a_route() -> None:
    assert set(web_routes()) == set(TABLE)


@pytest.mark.parametrize("name", sorted(TABLE))
def test_each_person_gets_exactly_what_the_table_says(name: str, world: World) -> None:
    row = TABLE[name]
    for person in PEOPLE:
        with transaction.atomic():
            answer = getattr(world.client(person), row.method)(world.address(name), dict(row.form))
            body = b"".join(answer) if answer.streaming else answer.content
            # The next person finds everything as it was.
            transaction.set_rollback(True)
        assert answer.status_code == row.expected(person), person
        if answer.status_code in (FORBIDDEN, MISSING) or person in ("nobody", "outsider"):
            assert b"the plan" not in body, person
        if person == "nobody" and not row.everybody:
            assert answer.headers["Location"].startswith("/accounts/login/")


@pytest.mark.parametrize("name", sorted(name for name, row in TABLE.items() if row.method == "post"))
def test_deeds_are_never_done_by_looking(name: str, world: World) -> None:
    """The form's own page may be looked at; every other deed answers 405."""
    answer = world.client("admin").get(world.address(name))
    assert answer.status_code == (200 if name == "submit-form" else 405)


def test_an_inactive_account_is_nobody(world: World) -> None:
    client = world.client("owner")
    User.objects.filter(username="owner").update(is_active=False)
    for name, row in TABLE.items():
        if not row.everybody:
            answer = getattr(client, row.method)(world.address(name), dict(row.form))
            assert answer.status_code == SIGN_IN, name
