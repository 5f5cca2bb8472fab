"""The cluster behind the gateway is one in memory."""

import pytest

from portal.clusters import gateway
from tests.jobs.cluster import ClusterDouble


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> ClusterDouble:
    double = ClusterDouble()
    monkeypatch.setattr(gateway, "_backend", lambda name, kind: double)
    return double
