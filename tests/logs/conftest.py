import pytest

from portal.jobs.models import Job, State
from portal.logs.models import Stream
from portal.teams.models import Team, User
from tests import factories


@pytest.fixture
def job(team: Team, member: User, site: factories.Site) -> Job:
    return factories.make_job(team, member, site.cpu, state=State.RUNNING)


@pytest.fixture
def stream(job: Job) -> Stream:
    return factories.make_stream(job)
