"""What every store of lines can do."""

from collections.abc import Iterator, Sequence
from typing import Protocol
from uuid import UUID

from portal.logs.specs import Record


class Store(Protocol):
    """Numbered lines of streams. Every method works in the caller's transaction, if there is one."""

    def append(self, stream_id: UUID, *, first_line: int, first_byte: int, records: Sequence[Record]) -> None:
        """Add lines behind the last. The caller has moved the stream's cursor, and so owns these numbers."""

    def read(self, stream_id: UUID, *, first: int, limit: int, max_bytes: int) -> list[Record]:
        """Lines `first` and following: at most `limit`, and none behind the one that reaches `max_bytes`."""

    def backwards(self, stream_id: UUID) -> Iterator[Record]:
        """All lines, the newest first."""

    def content(self, stream_id: UUID) -> Iterator[bytes]:
        """The text from its first byte on, in portions of bounded size."""
