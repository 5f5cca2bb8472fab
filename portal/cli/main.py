"""The arguments of `beamtime`."""

import argparse
import getpass
import os
import re
import sys
from collections.abc import Sequence
from datetime import UTC, datetime

from portal.cli import config
from portal.cli.client import Portal
from portal.cli.errors import Away, Trouble
from portal.cli.follow import Reader, Wish
from portal.cli.text import moment

_JOB = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)


def main(arguments: Sequence[str] | None = None) -> int:
    """0; the job's exit status after `logs --follow`; 1 for trouble; 2 for wrong arguments; 130 after Ctrl-C."""
    chosen = _parser().parse_args(arguments)
    try:
        code: int = chosen.verb(chosen)
        sys.stdout.flush()
    except (Trouble, Away) as trouble:
        sys.stderr.write(f"beamtime: {trouble}\n")
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whoever reads has seen enough, as `head` does; Python must not complain about it at its own end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="beamtime", description="Jobs of a Beamtime portal, from your terminal.")
    verbs = parser.add_subparsers(required=True, metavar="verb")
    login = verbs.add_parser("login", help="remember the portal's address and your token")
    login.add_argument("address", help="such as https://gpu.example.org")
    login.set_defaults(verb=_login)
    logs = verbs.add_parser("logs", help="the log of a job, line by line")
    logs.add_argument("job", help="id or address of a job; “last” is your newest")
    logs.add_argument("-f", "--follow", action="store_true", help="go on until the job is over; exit as the job did")
    logs.add_argument("--since", metavar="TIME", help="from then on: 10m, 2h, 1d, or 2026-11-30T14:00:00+01:00")
    logs.add_argument("--tail", type=_count, metavar="N", help="only the last N lines of what is there")
    logs.add_argument("--grep", type=_pattern, metavar="PATTERN", help="only lines that match this regular expression")
    logs.add_argument("--run", type=_count, action="append", default=[], metavar="N", help="of an array: only run N")
    logs.add_argument("--attempt", type=_count, metavar="N", help="this attempt instead of the newest")
    logs.add_argument("--numbers", action="store_true", help="the number of each line before it")
    logs.add_argument("--timestamps", action="store_true", help="the time of each line before it")
    logs.set_defaults(verb=_logs)
    return parser


def _login(chosen: argparse.Namespace) -> int:
    address = config.checked(chosen.address)
    # From a pipe or typed unseen; never an argument, which every user of the machine could read.
    token = getpass.getpass("Token (made on your tokens page): ") if sys.stdin.isatty() else sys.stdin.readline()
    found = config.Config(address, token.strip())
    Portal(found).get("teams/")
    sys.stderr.write(f"beamtime: written to {config.save(found)}\n")
    return 0


def _logs(chosen: argparse.Namespace) -> int:
    portal = Portal(config.load())
    wish = Wish(
        follow=chosen.follow,
        since=moment(chosen.since, datetime.now(UTC)) if chosen.since else None,
        tail=chosen.tail,
        grep=chosen.grep,
        runs=frozenset(chosen.run),
        attempt=chosen.attempt,
        numbers=chosen.numbers,
        times=chosen.timestamps,
    )
    return Reader(portal, _job(portal, chosen.job), wish).run()


def _job(portal: Portal, text: str) -> str:
    found = _JOB.search(text)
    if found:
        return found[0]
    if text != "last":
        raise Trouble(f"“{text}” is no job. Give the id or the address of its page, or “last” for your newest.")
    jobs = portal.get("jobs/?mine=1&limit=1")["results"]
    if not jobs:
        raise Trouble("You have submitted no job yet.")
    return str(jobs[0]["id"])


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 12:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 0 on")
    return int(text)


def _pattern(text: str) -> "re.Pattern[str]":
    try:
        return re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no regular expression: {error}") from None
