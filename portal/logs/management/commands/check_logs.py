"""`manage.py check_logs`: every sealed log against its digest."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from portal.logs.checks import check_logs
from portal.teams.models import Team


class Command(BaseCommand):
    help = (
        "Reads every sealed log again and compares text, digest, counts and continuity with what was written down. "
        "Exit status 1 if a log differs or could not be read; its name and what differs are printed."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--team", default="", help="Only the logs of this team, by its slug.")
        parser.add_argument(
            "--repair",
            choices=["no"],
            default="no",
            help="Nothing is ever changed: a log that differs is restored from a backup, or stays as evidence.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        team = options["team"]
        if team and not Team.objects.filter(slug=team).exists():
            raise CommandError(f"There is no team {team}.", returncode=2)
        streams = sealed = bad = unread = 0
        for stream, findings in check_logs(team=team):
            streams, sealed = streams + 1, sealed + (stream.sealed_at is not None)
            bad += bool(findings) and not findings[0].unread
            unread += bool(findings) and findings[0].unread
            for finding in findings:
                name = f"{stream.pod_name}/{stream.container} of job {stream.job_id} ({stream.pk})"
                self.stdout.write(f"{name}: {finding.what}")
        self.stdout.write(f"{streams} logs, {sealed} sealed: {bad} differ, {unread} could not be read.")
        if bad or unread:
            raise SystemExit(1)
