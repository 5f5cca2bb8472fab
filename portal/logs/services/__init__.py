"""The verbs of the log.

The stream's cursor is moved by a conditional UPDATE, so that a replay or a second reader changes nothing.
"""

from portal.logs.services.append import append, set_open_text
from portal.logs.services.gaps import note_gap
from portal.logs.services.streams import complete, open_stream

__all__ = ["append", "complete", "note_gap", "open_stream", "set_open_text"]
