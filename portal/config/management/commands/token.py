"""`manage.py token <user>`: an API token for a program, alone on its line."""

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from portal.core.errors import Refused
from portal.teams.models import Scope, User
from portal.teams.services import issue_token


class Command(BaseCommand):
    help = "Makes an API token for a person and prints it, alone on its line. It is shown only now."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("username")
        parser.add_argument("--name", default="command line", help="what the person sees in their list of tokens")
        parser.add_argument("--scope", choices=Scope.values, default=Scope.WRITE.value)
        parser.add_argument("--days", type=int, default=30, help="how long it lives; 30 unless told otherwise")

    def handle(self, *args: Any, **options: Any) -> None:
        user = User.objects.filter(username=options["username"]).first()
        if user is None:
            raise CommandError(f"There is no account {options['username']!r}.")
        lifetime = timedelta(days=options["days"])
        try:
            _, text = issue_token(user=user, name=options["name"], scope=options["scope"], lifetime=lifetime)
        except Refused as refused:
            raise CommandError("\n".join(problem.message for problem in refused.problems)) from refused
        self.stdout.write(text)
