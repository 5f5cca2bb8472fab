"""`manage.py site_setup`: what a new or upgraded site needs beside its tables."""

from typing import Any

from django.core.management.base import BaseCommand

from portal.catalog.services import install_shipped
from portal.clusters.services import ensure_cluster
from portal.clusters.specs import ClusterError
from portal.quotas.services import synchronise


class Command(BaseCommand):
    help = "Makes the row of the cluster and installs the shipped templates. Run it after `migrate`; safe to repeat."

    def handle(self, *args: Any, **options: Any) -> None:
        cluster = ensure_cluster()
        self.stdout.write(f"Cluster {cluster.name}: {cluster.get_backend_display()}")
        installed = install_shipped()
        for version in installed:
            self.stdout.write(f"Template installed: {version}")
        if not installed:
            self.stdout.write("Templates: nothing new")
        try:
            synchronise(cluster)
        except ClusterError as error:
            self.stdout.write(f"Queues: not in step yet; the worker tries again each minute ({error})")
        else:
            self.stdout.write("Queues: in step")
