"""Every setting that an operator may give, in one table: name, kind, default, and what it is for.

`settings.py` reads it, `manage.py settings_help` prints it, `deploy/README.md` repeats it (a test compares them).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from environ import Env


@dataclass(frozen=True, slots=True)
class Setting:
    """One variable of the environment. `kind`: text, path, yes/no, seconds, number, list or secret."""

    name: str
    kind: str
    default: str
    help: str


SETTINGS: tuple[Setting, ...] = (
    Setting(
        "BEAMTIME_MODE",
        "text",
        "embedded",
        "`embedded`: one process for everything, SQLite, no broker; `server`: web, worker, beat and watch apart.",
    ),
    Setting("BEAMTIME_DATA_DIR", "path", "var", "Where the embedded mode keeps its database, keys and job files."),
    Setting("DATABASE_URL", "secret", "", "`postgres://…` or `sqlite:///…`; empty: SQLite in the data folder."),
    Setting(
        "REDIS_URL", "secret", "", "`redis://…` for broker, bus and cache; needed by `server`, unused by `embedded`."
    ),
    Setting("BEAMTIME_SECRET_KEY", "secret", "", "Signs sessions. `embedded` makes one in the data folder."),
    Setting(
        "BEAMTIME_SECRETS_KEYS",
        "secret",
        "",
        "Fernet keys for job secrets, comma-separated; the first encrypts, all decrypt. `embedded` makes one.",
    ),
    Setting("BEAMTIME_ALLOWED_HOSTS", "list", "localhost,127.0.0.1,[::1]", "Host names that the portal answers to."),
    Setting("BEAMTIME_PUBLIC_URL", "text", "http://127.0.0.1:8000", "The address that people type; used in links."),
    Setting("BEAMTIME_HTTPS", "yes/no", "no", "The public address is https: secure cookies, HSTS, forwarded headers."),
    Setting("BEAMTIME_DEBUG", "yes/no", "no", "Django's debug pages. Never in production."),
    Setting("BEAMTIME_TIME_ZONE", "text", "UTC", "The site's time zone for pages and months."),
    Setting("BEAMTIME_CURRENCY", "text", "EUR", "ISO 4217 code of prices and costs."),
    Setting(
        "BEAMTIME_INSTANCE", "text", "beamtime", "Label value that marks this portal's objects in a shared cluster."
    ),
    Setting("BEAMTIME_CLUSTER_NAME", "text", "default", "Name of the cluster that this portal submits to."),
    Setting(
        "BEAMTIME_CLUSTER_BACKEND",
        "text",
        "auto",
        "`kube`, `local`, or `auto`: kube where a kubeconfig or a service account is found, else local.",
    ),
    Setting("BEAMTIME_CLUSTER_KUBECONFIG", "path", "", "Path of a kubeconfig; empty: the pod's service account."),
    Setting(
        "BEAMTIME_ALLOW_LOCAL_BACKEND",
        "yes/no",
        "no",
        "Let `server` run jobs as processes of the portal's own user. `embedded` may always, on a loopback address.",
    ),
    Setting(
        "BEAMTIME_KEEP_FINISHED", "seconds", "3600", "How long a finished Job stays in the cluster once all is stored."
    ),
    Setting("BEAMTIME_SWEEP", "seconds", "5", "How often the sweep looks for rows whose hint was lost."),
    Setting("BEAMTIME_LEASE", "seconds", "15", "How long a watcher may be silent before a standby takes over."),
    Setting("BEAMTIME_IMAGE_SHELL", "text", "busybox:1.37", "Image with a shell, for the shipped templates."),
    Setting("BEAMTIME_IMAGE_PYTHON", "text", "python:3.12-slim", "Image with Python 3.11 or newer, likewise."),
    Setting(
        "BEAMTIME_IMAGE_PYTORCH",
        "text",
        "",
        "Image with PyTorch and CUDA, likewise; empty: the shipped templates do not offer one.",
    ),
    Setting("BEAMTIME_DEMO_PASSWORD", "secret", "", "Password of the demo accounts; empty: one is made and printed."),
    Setting("BEAMTIME_EMAIL_URL", "secret", "consolemail://", "Where mail goes, such as `smtp://user:pass@host:25`."),
    Setting("BEAMTIME_EMAIL_FROM", "text", "beamtime@localhost", "The sender of mail."),
    Setting(
        "BEAMTIME_LOG_BYTES_PER_JOB",
        "number",
        "5368709120",
        "Bytes of log that are kept of one job; what comes after is counted and left out. 0: without limit.",
    ),
    Setting(
        "BEAMTIME_LOG_FILE_BYTES",
        "number",
        "10485760",
        "The smallest `containerLogMaxSize` of the cluster's kubelets, in bytes: tells whether lines can be missing.",
    ),
    Setting(
        "BEAMTIME_LOG_RETENTION_DAYS",
        "number",
        "0",
        "Days after a job's end for which its logs are kept where the team has no rule of its own. 0: for ever.",
    ),
    Setting(
        "BEAMTIME_LOG_STORE",
        "text",
        "database",
        "Where the older part of logs goes, compressed: `database`, or `s3` for an S3-compatible object store.",
    ),
    Setting("BEAMTIME_S3_ENDPOINT", "text", "", "Its address, such as `https://s3.example.org`; empty: Amazon's."),
    Setting("BEAMTIME_S3_BUCKET", "text", "", "Its bucket, which must be there; needed by `s3`."),
    Setting("BEAMTIME_S3_REGION", "text", "us-east-1", "Its region; most servers of one's own take any."),
    Setting("BEAMTIME_S3_PREFIX", "text", "logs/", "What all keys begin with, so that a bucket may be shared."),
    Setting("BEAMTIME_S3_ACCESS_KEY", "secret", "", "Its access key; empty: from the machine's role."),
    Setting("BEAMTIME_S3_SECRET_KEY", "secret", "", "The secret of that key."),
    Setting(
        "BEAMTIME_INGEST_TOKENS",
        "secret",
        "",
        "What collectors on the nodes say to deliver logs, comma-separated; empty: none may deliver.",
    ),
    Setting(
        "BEAMTIME_METRICS_TOKEN",
        "secret",
        "",
        "What Prometheus says to read `/metrics` of web; empty: there is no such address.",
    ),
    Setting(
        "BEAMTIME_METRICS_PORT",
        "number",
        "0",
        "Port on which watch and worker show their metrics, without a token; 0: on none.",
    ),
    Setting("BEAMTIME_METRICS_HOST", "text", "127.0.0.1", "The address that this port is bound to."),
    Setting("BEAMTIME_LOG_LEVEL", "text", "INFO", "Level of the portal's own log."),
)

_BY_NAME = {setting.name: setting for setting in SETTINGS}
_TRUE, _FALSE = {"yes", "true", "1", "on"}, {"no", "false", "0", "off"}


class SettingInvalid(ValueError):
    """A variable of the environment cannot be read; the message names it and what it may be."""


class Reader:
    """Typed reads of the table, from an environment given as a mapping."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment

    def text(self, name: str) -> str:
        """The value, or the table's default. A `<NAME>_FILE` beside it names a file that holds the value."""
        setting = _BY_NAME[name]
        file = self._environment.get(f"{name}_FILE")
        if file:
            try:
                return Path(file).read_text().strip()
            except OSError as error:
                raise SettingInvalid(f"{name}_FILE: cannot read {file} ({error.strerror})") from error
        return self._environment.get(name, setting.default)

    def yes(self, name: str) -> bool:
        value = self.text(name).strip().lower()
        if value in _TRUE:
            return True
        if value in _FALSE:
            return False
        raise SettingInvalid(f"{name}: {value!r} is neither yes nor no")

    def number(self, name: str) -> int:
        value = self.text(name)
        if not value.isdigit() or int(value) == 0:
            raise SettingInvalid(f"{name}: {value!r} is not a whole number above 0")
        return int(value)

    def count(self, name: str) -> int:
        """A number that may be 0, which then means that there is no limit."""
        value = self.text(name)
        if not value.isdigit():
            raise SettingInvalid(f"{name}: {value!r} is not a whole number from 0 on")
        return int(value)

    def items(self, name: str) -> list[str]:
        return [item.strip() for item in self.text(name).split(",") if item.strip()]

    def choice(self, name: str, *allowed: str) -> str:
        value = self.text(name)
        if value not in allowed:
            raise SettingInvalid(f"{name}: {value!r} is not one of {', '.join(allowed)}")
        return value

    def database(self, fallback: Path) -> dict[str, Any]:
        """Django's DATABASES entry, with the options that each engine needs."""
        config: dict[str, Any] = Env.db_url_config(self.text("DATABASE_URL") or f"sqlite:///{fallback}")
        if "sqlite" in config["ENGINE"]:
            # WAL lets readers go on beside one writer; IMMEDIATE makes writers wait instead of failing.
            pragmas = "PRAGMA journal_mode=WAL;PRAGMA synchronous=NORMAL;PRAGMA cache_size=-4000;"
            # Opening one costs more than many a query. Few are kept: the threads of requests are (web/handler.py).
            config["CONN_MAX_AGE"] = 60
            # A test database in memory would share one connection among threads, which is not what is shipped.
            config["TEST"] = {"NAME": str(fallback.with_name("test.sqlite3"))}
            config["OPTIONS"] = {"transaction_mode": "IMMEDIATE", "timeout": 20, "init_command": pragmas}
        else:
            # Under ASGI a kept connection leaks with its thread; the pool keeps them instead.
            config["CONN_MAX_AGE"] = 0
            config["OPTIONS"] = {"pool": {"min_size": 1, "max_size": 12, "timeout": 10}}
        return config
