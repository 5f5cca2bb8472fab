import pytest

from portal.jobs.models import Job, State
from portal.teams.models import Team, User
from tests import factories


@pytest.fixture
def job(team: Team, member: User, site: factories.Site) -> Job:
    return factories.make_job(team, member, site.gpu, state=State.SUCCEEDED, gpu_model="NVIDIA H100")
