"""What the stories of the settings and processes share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.config.server import Server
from tests.config.terminal import Demo, copied
from tests.support.servers import RedisServer


@pytest.fixture
def redis_that_fails() -> Iterator[RedisServer]:
    """A Redis of one's own, to be stopped and started."""
    server = RedisServer()
    yield server
    server.close()


@pytest.fixture(scope="session")
def seeded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder of a demo that was set up once and has not been started yet, to be copied and not touched."""
    made = Demo(tmp_path_factory.mktemp("seeded") / "var")
    for words in (("migrate", "--verbosity=0"), ("seed_demo",)):
        done = made.manage(*words)
        assert done.returncode == 0, done.stderr
    return made.folder


@pytest.fixture
def site(tmp_path: Path, seeded: Path, redis_that_fails: RedisServer) -> Server:
    """With the demo's people and templates, on this broker."""
    site = Server(tmp_path, redis_that_fails.url)
    # The backend keeps its queues beside the database.
    copied(seeded, site.folder)
    (site.folder / "beamtime.sqlite3").rename(site.database)
    return site
