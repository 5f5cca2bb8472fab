"""`manage.py demo`: a whole site in one process, with people, queues and templates to play with."""

import logging
import os
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from portal.clusters.models import BackendKind, Cluster, ResourceFlavor
from portal.clusters.specs import ClusterError
from portal.config import demo, embedded


class Command(BaseCommand):
    help = "Runs the demo: everything in this one process, on this machine only. Ctrl-C ends it and its jobs."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default="127.0.0.1")
        parser.add_argument("--port", default=os.environ.get("PORT") or "8000", help="default: PORT, else 8000")

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.EMBEDDED:
            raise CommandError("The demo is the embedded mode: unset BEAMTIME_MODE.")
        host, port = options["host"], _port(options["port"])
        address = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        _speak_as(address)
        try:
            with embedded.only_one(settings.BEAMTIME_DATA_DIR, address), embedded.listen(host, port) as sock:
                self._migrate()
                password = demo.seed()
                welcome = self._welcome(address, password)
                embedded.serve(sock, on_start=lambda: self._say(welcome), say=self._say)
        except embedded.CannotStart as error:
            raise CommandError(str(error)) from error
        except ClusterError as error:
            raise CommandError(f"The cluster's queues cannot be brought in step: {error}") from error

    def _migrate(self) -> None:
        executor = MigrationExecutor(connection)
        if executor.migration_plan(executor.loader.graph.leaf_nodes()):
            self._say("Preparing the database…")
            call_command("migrate", verbosity=0)

    def _welcome(self, address: str, password: str) -> str:
        lines = [f"Beamtime runs at  {self.style.SUCCESS(address)}", ""]
        lines += [f"  {account.username:10} {account.does}" for account in demo.ACCOUNTS]
        lines += ["", f"  Password of all five: {self.style.SUCCESS(password)}"]
        if ResourceFlavor.objects.filter(pretended=True, removed_at=None).exists():
            lines += ["", "  This machine has no NVIDIA GPUs, so the demo's are pretended. Jobs are real processes."]
        lines += ["", f"  Data: {settings.BEAMTIME_DATA_DIR}   {self._stopping()}"]
        return "\n" + "\n".join(f"  {line}".rstrip() for line in lines) + "\n"

    def _stopping(self) -> str:
        """Jobs of this machine end with the portal; those of a cluster are the cluster's."""
        if Cluster.objects.get(name=settings.BEAMTIME_CLUSTER_NAME).backend == BackendKind.LOCAL:
            return "Stop: Ctrl-C, which ends its jobs too"
        place = settings.BEAMTIME_CLUSTER_KUBECONFIG or "this pod"
        return f"Stop: Ctrl-C; jobs go on in the cluster of {place}"

    def _say(self, text: str) -> None:
        self.stdout.write(text)
        self.stdout.flush()


def _port(text: str) -> int:
    if not text.isdigit() or not 0 < int(text) < 65_536:
        raise CommandError(f"PORT: {text!r} is no port. Give a number from 1 to 65535, such as 8001.")
    return int(text)


def _speak_as(address: str) -> None:
    """Where the operator said nothing else: links name the address served, and the terminal stays readable."""
    if "BEAMTIME_LOG_LEVEL" not in os.environ:
        # In the settings too, because Celery and ASGI set logging up again from there.
        settings.LOGGING["loggers"]["portal"]["level"] = "WARNING"
        logging.getLogger("portal").setLevel(logging.WARNING)
    if "BEAMTIME_PUBLIC_URL" not in os.environ:
        settings.BEAMTIME_PUBLIC_URL = address
        settings.CSRF_TRUSTED_ORIGINS = [address]
