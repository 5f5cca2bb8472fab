#!/usr/bin/env python
"""Django's command line for Beamtime."""

import os
import sys

from django.core.management import execute_from_command_line

from portal.config.env import SettingInvalid

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.config.settings")
    try:
        execute_from_command_line(sys.argv)
    except SettingInvalid as error:
        # A sentence for the operator; a traceback would bury it.
        sys.exit(f"{error}\nAll settings: python manage.py settings_help, or deploy/README.md")
