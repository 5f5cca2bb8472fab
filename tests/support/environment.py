"""The environment of a run of the suite: a folder of its own, and the database asked for.

`BEAMTIME_TEST_DATABASE=postgres` runs the suite on a throwaway PostgreSQL; without it, on SQLite.
"""

import atexit
import os
import shutil
import tempfile
from pathlib import Path

from tests.support.servers import PostgresServer

# The suite's own variables, and those of the cluster tests' testbed.
_KEPT = (
    "BEAMTIME_TEST_",
    *(f"BEAMTIME_CLUSTER_{name}" for name in ("CACHE", "KEEP", "GPUS", "LOG_MAX_SIZE", "NODE_GRACE", "TOLERATION")),
)


def prepare() -> None:
    """Set the environment before the portal's settings are read; whatever is made here goes with the process."""
    folder = tempfile.mkdtemp(prefix="beamtime-tests-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for name in list(os.environ):
        if name.startswith("BEAMTIME_") and not name.startswith(_KEPT):
            del os.environ[name]
    os.environ.pop("REDIS_URL", None)
    os.environ.pop("DATABASE_URL", None)
    # WhiteNoise warns for every request when its folder is not there.
    (Path(folder) / "static").mkdir()
    os.environ["BEAMTIME_DATA_DIR"] = folder
    os.environ["BEAMTIME_LOG_LEVEL"] = "ERROR"
    if os.environ.get("BEAMTIME_TEST_DATABASE", "sqlite") == "postgres":
        server = PostgresServer()
        atexit.register(server.close)
        os.environ["DATABASE_URL"] = server.url
