"""`manage.py watch`: the process that listens to the cluster."""

import asyncio
import signal
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from portal.core import metrics
from portal.watch.runner import run


class Command(BaseCommand):
    help = "Listens to the cluster: job states, logs, usage. Several may run; one leads, the others stand by."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--cluster", default=settings.BEAMTIME_CLUSTER_NAME, help="name of the cluster")

    def handle(self, *args: Any, **options: Any) -> None:
        metrics.expose()
        asyncio.run(_until_told_to_stop(options["cluster"]))


async def _until_told_to_stop(cluster: str) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await run(cluster, stop)
