"""What the store of lines can do."""

from collections.abc import Iterator, Sequence
from typing import Protocol
from uuid import UUID

from portal.logs.specs import Record


class Store(Protocol):
    """Numbered lines of streams. Every method works in the caller's transaction, if there is one.

    Every reader may meet `Unavailable`: sealed lines lie elsewhere and that place does not answer. None of them says
    whether more should have been there: its caller knows the stream's cursor.
    """

    def append(self, stream_id: UUID, *, first_line: int, first_byte: int, records: Sequence[Record]) -> None:
        """Add lines behind the last. The caller has moved the stream's cursor, and so owns these numbers."""

    def read(
        self, stream_id: UUID, *, first: int, limit: int, max_bytes: int, sealed_line: int | None = None
    ) -> list[Record]:
        """Lines `first` and following: at most `limit`, and none behind the one that reaches `max_bytes`.

        `sealed_line`: the stream's, as the caller read it (an older one is right too); without it one query more.
        """

    def backwards(self, stream_id: UUID) -> Iterator[Record]:
        """All lines, the newest first."""

    def content(self, stream_id: UUID) -> Iterator[bytes]:
        """The text from its first byte on, in portions of at most about 256 KiB."""

    def scan(self, stream_id: UUID, first_line: int = 1) -> Iterator[tuple[int, bytes]]:
        """The text from a line on, in portions of at most about 256 KiB: (number of its first line, whole lines).

        Only the last line of a portion may lack its line feed (LINES.md); the next portion begins a new line then too.
        """

    def scan_back(self, stream_id: UUID, last_line: int | None = None) -> Iterator[tuple[int, bytes]]:
        """The same from a line (its last without one) backwards: portions in falling order, lines in them in rising."""
