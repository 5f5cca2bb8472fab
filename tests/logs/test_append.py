"""Storing lines: each once, in order, under a number that never changes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from portal.core import leases
from portal.jobs.models import Job, State
from portal.logs import selectors, services
from portal.logs.models import Chunk, Stream
from portal.logs.policy import CHUNK_BYTES, CHUNK_LINES, LINE_BYTES, packs, pieces
from portal.logs.specs import Record
from portal.teams.models import Team, User
from tests import factories


@pytest.fixture
def job(team: Team, member: User, site: factories.Site) -> Job:
    return factories.make_job(team, member, site.cpu, state=State.RUNNING, due_at=None)
