"""A site in server mode, for stories about its processes."""

import os
import subprocess
import sys
from pathlib import Path

from cryptography.fernet import Fernet

ROOT = Path(__file__).resolve().parents[2]
SUBMIT = """
from portal.jobs.services import submit
from portal.jobs.specs import JobRequest
from portal.teams.models import Team, User
team, user = Team.objects.get(slug="vision"), User.objects.get(username="member")
submit(JobRequest(team=team, user=user, template="script", version=None, values={"script": "true"}, name="", queue=None,
                  idempotency_key=None))
"""
STATES = "from portal.jobs.models import Job; print(*Job.objects.values_list('state', flat=True))"


class Server:
    """A site in server mode, without its web: a database of its own, jobs as processes of this machine, a broker."""

    def __init__(self, folder: Path, redis_url: str) -> None:
        self.folder, self.database = folder / "data", folder / "site.sqlite3"
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("BEAMTIME_", "DATABASE_"))}
        self.environment = kept | {
            "DJANGO_SETTINGS_MODULE": "portal.config.settings",
            "BEAMTIME_MODE": "server",
            "BEAMTIME_DATA_DIR": str(self.folder),
            "DATABASE_URL": f"sqlite:///{self.database}",
            "REDIS_URL": redis_url,
            "BEAMTIME_CLUSTER_BACKEND": "local",
            "BEAMTIME_ALLOW_LOCAL_BACKEND": "yes",
            "BEAMTIME_SECRET_KEY": "a key for this test",
            "BEAMTIME_SECRETS_KEYS": Fernet.generate_key().decode(),
            "BEAMTIME_DEMO_PASSWORD": "a password for this test",
        }

    def manage(self, *arguments: str) -> str:
        command = [sys.executable, "manage.py", *arguments]
        return subprocess.run(
            command, cwd=ROOT, env=self.environment, check=True, capture_output=True, text=True
        ).stdout

    def states(self) -> list[str]:
        return self.manage("shell", "--verbosity=0", "-c", STATES).split()
