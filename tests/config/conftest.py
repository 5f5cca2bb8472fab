"""What the stories of the settings and processes share."""

from collections.abc import Iterator

import pytest

from tests.support.servers import RedisServer


@pytest.fixture
def redis_that_fails() -> Iterator[RedisServer]:
    """A Redis of one's own, to be stopped and started."""
    server = RedisServer()
    yield server
    server.close()
