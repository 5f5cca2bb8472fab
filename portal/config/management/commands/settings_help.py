"""`manage.py settings_help`: every setting that an operator may give."""

import textwrap
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from portal.config.env import SETTINGS, Setting

WIDTH = 100


class Command(BaseCommand):
    help = "Lists every variable of the environment that Beamtime reads."
    # It has to help just where something is wrong with the settings.
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--markdown", action="store_true", help="as the table of deploy/README.md")

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(markdown() if options["markdown"] else plain())


def markdown() -> str:
    """A Markdown table, one row per setting."""
    rows = ["| name | kind | default | what it is for |", "|---|---|---|---|"]
    rows += [f"| `{each.name}` | {each.kind} | {_default(each, '`')} | {each.help} |" for each in SETTINGS]
    return "\n".join(rows)


def plain() -> str:
    """A block per setting, for a terminal."""
    blocks = []
    for each in SETTINGS:
        head = f"{each.name}  ({each.kind}, default: {_default(each, '')})"
        blocks.append(head + "\n" + textwrap.indent("\n".join(textwrap.wrap(each.help, WIDTH - 4)), "    "))
    note = "Any NAME may also be given as NAME_FILE, the path of a file that holds the value."
    return "\n\n".join([*blocks, note])


def _default(setting: Setting, quote: str) -> str:
    return f"{quote}{setting.default}{quote}" if setting.default else "none"
