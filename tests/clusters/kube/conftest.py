"""The backend in front of a FAKE API server (see fake.py), and people who watch through it."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from portal.clusters.kube import observer, pulse, reflector
from portal.clusters.kube.backend import KubeBackend
from tests.clusters.kube.fake import FakeApi
from tests.clusters.kube.stories import INSTANCE
from tests.clusters.kube.watching import Watching


@pytest.fixture
def api(tmp_path: Path) -> Iterator[FakeApi]:
    with FakeApi(tmp_path) as fake:
        yield fake


@pytest.fixture
def backend(api: FakeApi) -> KubeBackend:
    return KubeBackend(cluster="main", kubeconfig=api.kubeconfig, instance=INSTANCE)


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """The waits between tries shortened, so that a test need not sit through them."""
    monkeypatch.setattr(reflector, "BEGIN", 1.0)
    monkeypatch.setattr(reflector, "RELIST_AT_MOST_EVERY", 0.1)
    monkeypatch.setattr(pulse, "PERIOD", 0.2)
    monkeypatch.setattr(pulse, "PATIENCE", 0.2)
    monkeypatch.setattr(observer, "UNSEEN", 0.3)
    monkeypatch.setattr(observer, "LOOK_AGAIN", 0.2)


@pytest.fixture
def watching(backend: KubeBackend, hurried: None, caplog: pytest.LogCaptureFixture) -> Iterator[Watching]:
    """Not started yet: a test first says what the cluster holds."""
    caplog.set_level(logging.INFO, logger="portal.clusters.kube")
    made = Watching(backend)
    yield made
    made.stop()
