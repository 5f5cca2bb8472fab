"""The one set of fixtures: a small site, its people, and what they work with.

People: `member` and `lead` belong to team vision, `outsider` to team language; `auditor` and `admin_user` to the site.
"""

from collections.abc import Iterator

import pytest

from portal.teams.models import Membership, Role, Team, User
from tests import factories
from tests.support.flush import let_tests_flush
from tests.support.servers import RedisServer

let_tests_flush()


@pytest.fixture
def team(db: None) -> Team:
    return Team.objects.create(slug="vision", name="Vision")


@pytest.fixture
def other_team(db: None) -> Team:
    return Team.objects.create(slug="language", name="Language")


@pytest.fixture
def member(team: Team) -> User:
    user = factories.make_user("member")
    Membership.objects.create(team=team, user=user, role=Role.MEMBER)
    return user


@pytest.fixture
def lead(team: Team) -> User:
    user = factories.make_user("lead")
    Membership.objects.create(team=team, user=user, role=Role.LEAD)
    return user


@pytest.fixture
def outsider(other_team: Team) -> User:
    user = factories.make_user("outsider")
    Membership.objects.create(team=other_team, user=user, role=Role.MEMBER)
    return user


@pytest.fixture
def auditor(db: None) -> User:
    return factories.make_user("auditor", is_auditor=True)


@pytest.fixture
def admin_user(db: None) -> User:
    return factories.make_user("admin", is_superuser=True, is_staff=True)


@pytest.fixture
def site(db: None) -> factories.Site:
    """A cluster that runs jobs on this machine, with the queues `gpu` and `cpu`, prices, and a simple template."""
    return factories.make_site()


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    """A real Redis; a test that stops it must start it again."""
    server = RedisServer()
    yield server
    server.close()
