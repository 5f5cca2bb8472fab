"""`manage.py demo_reset`: forget the demo, so that its next start begins anew."""

import shutil
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from portal.clusters.local.backend import LocalBackend
from portal.config import embedded
from portal.config.demo import PASSWORD_FILE

# What the embedded mode makes in its data folder; whatever else lies there is somebody else's.
FILES = ("beamtime.sqlite3", "beamtime.sqlite3-wal", "beamtime.sqlite3-shm", "secret-key", "fernet-key", PASSWORD_FILE)
FOLDERS = ("local", "static")


class Command(BaseCommand):
    help = "Ends jobs that are left and removes the demo's database, keys, password and job files."
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        folder: Path = settings.BEAMTIME_DATA_DIR
        if not settings.EMBEDDED:
            raise CommandError("Only the data of the embedded mode is removed: unset BEAMTIME_MODE.")
        try:
            with embedded.only_one(folder, ""):
                for root in (folder / "local").glob("*"):
                    LocalBackend(root=root, cluster=root.name).shutdown(grace=1.0)
                for name in FILES:
                    (folder / name).unlink(missing_ok=True)
                for name in FOLDERS:
                    shutil.rmtree(folder / name, ignore_errors=True)
        except embedded.CannotStart as error:
            raise CommandError(str(error)) from error
        (folder / embedded.LOCK_FILE).unlink(missing_ok=True)
        self.stdout.write(f"The demo in {folder} is forgotten; `make demo` begins anew.")
