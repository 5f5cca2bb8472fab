"""`manage.py seed_demo`: the demo site's teams, people, queues, prices and templates."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from portal.clusters.specs import ClusterError
from portal.config.demo import ACCOUNTS, seed


class Command(BaseCommand):
    help = "Makes the demo site, or what is missing of it. Safe to repeat."

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            password = seed()
        except ClusterError as error:
            raise CommandError(f"The cluster's queues cannot be brought in step: {error}") from error
        for account in ACCOUNTS:
            self.stdout.write(f"{account.username:10} {account.does}")
        self.stdout.write(f"Password of all: {password}")
