"""A machine that really runs jobs: the local backend in a folder of its own, observed from a thread."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clusters.local.machine import Machine


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    """4 pretended H100 in queue `gpu`, 4 cores in queue `cpu`; ends every process at the end of the test."""
    made = Machine(tmp_path / "cluster")
    made.start()
    try:
        yield made
    finally:
        made.backend.shutdown(grace=0.2)
        made.stop()
