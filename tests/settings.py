"""The suite's settings: the portal's own, read from an environment made for the run."""

from tests.support.environment import prepare

prepare()

from portal.config.settings import *  # noqa: E402, F403

if DATABASES["default"]["ENGINE"].endswith("sqlite3"):  # noqa: F405
    # A file in WAL mode, as in production: threads that share the in-memory database lock each other's tables.
    DATABASES["default"]["TEST"] = {"NAME": str(BEAMTIME_DATA_DIR / "test.sqlite3")}  # noqa: F405

# Argon2 takes its time on purpose. That the portal itself uses it is looked at where its own processes run.
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
