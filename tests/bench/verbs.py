"""Functions that a measure has done inside a process of the portal's own: `python -m MODULE VERB ARGUMENT...`."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any


def answer(verbs: Mapping[str, Callable[..., Any]]) -> None:
    """Print the JSON of what the verb of the command line says, with the portal set up."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.config.settings")
    import django

    django.setup()
    verb, *arguments = sys.argv[1:]
    print(json.dumps(verbs[verb](*arguments), default=str))
