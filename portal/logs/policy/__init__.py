"""Rules of the log. Pure."""

from portal.logs.policy.expiry import expired_words, expires_at, expiring_words
from portal.logs.policy.gaps import gap_words
from portal.logs.policy.lines import (
    CHUNK_BYTES,
    CHUNK_LINES,
    DISPLAY_BYTES,
    LINE_BYTES,
    cut,
    decode,
    display_text,
    is_record,
    joins,
    packs,
    pieces,
)

__all__ = [
    "CHUNK_BYTES",
    "CHUNK_LINES",
    "DISPLAY_BYTES",
    "LINE_BYTES",
    "cut",
    "decode",
    "display_text",
    "expired_words",
    "expires_at",
    "expiring_words",
    "gap_words",
    "is_record",
    "joins",
    "packs",
    "pieces",
]
