"""What the stories of the settings and processes share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.config.server import Server
from tests.support.servers import RedisServer


@pytest.fixture
def redis_that_fails() -> Iterator[RedisServer]:
    """A Redis of one's own, to be stopped and started."""
    server = RedisServer()
    yield server
    server.close()


@pytest.fixture
def site(tmp_path: Path, redis_that_fails: RedisServer) -> Server:
    """With the demo's people and templates, on this broker."""
    site = Server(tmp_path, redis_that_fails.url)
    site.manage("migrate", "--verbosity=0")
    site.manage("seed_demo")
    return site
