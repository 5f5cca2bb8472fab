"""The verbs of the log.

The stream's cursor is moved by a conditional UPDATE, so that a replay or a second reader changes nothing.
"""

from portal.logs.services.append import append, set_open_text
from portal.logs.services.expire import expire, set_retention
from portal.logs.services.gaps import note_gap
from portal.logs.services.sealing import seal, seal_stream
from portal.logs.services.streams import complete, open_stream

__all__ = [
    "append",
    "complete",
    "expire",
    "note_gap",
    "open_stream",
    "seal",
    "seal_stream",
    "set_open_text",
    "set_retention",
]
