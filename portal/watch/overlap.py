"""Where a log that is read again goes on after what is stored. Pure.

A resumed read sends whole seconds again. "Newer than the last" would lose lines that share a time stamp and "skip as
many as are stored" is wrong after a rotation, so the records themselves are compared, in order.
"""

import hashlib
from array import array
from collections.abc import Iterable, Sequence

from portal.logs.specs import Record


def _key(record: Record) -> int:
    digest = hashlib.blake2b(record.text, digest_size=8, salt=record.time_ns.to_bytes(8, "little", signed=True))
    return int.from_bytes(digest.digest(), "little")


def keys_of(backwards: Iterable[Record]) -> "array[int]":
    """Eight bytes for each line, in order; the lines come the last one first, and are not kept."""
    keys = array("Q", (_key(record) for record in backwards))
    keys.reverse()
    return keys


class Overlap:
    """Drops what is stored, given by its keys, from the start of a resumed read.

    `gap`: the read did not contain the last stored line, so lines may be missing between.
    """

    def __init__(self, stored: "array[int]") -> None:
        self._keys = stored
        # How far the read has repeated the stored lines from their first one on.
        self._verified = 0
        self._seen = array("Q")
        self._held: list[Record] = []
        self._known: set[int] | None = None
        self.gap = False
        self.settled = not stored

    def new(self, records: Sequence[Record]) -> Sequence[Record]:
        """Those of the next records that are not stored yet. What is certainly stored is dropped at once."""
        if self.settled:
            return records
        for index, record in enumerate(records):
            key = _key(record)
            if self._known is None and key == self._keys[self._verified]:
                self._verified += 1
                if self._verified == len(self._keys):
                    self.settled = True
                    return records[index + 1 :]
                continue
            if self._known is None:
                # The read does not begin with the first stored line: the log was rotated meanwhile.
                self._known = set(self._keys)
                self._seen = self._keys[: self._verified]
            if key not in self._known:
                return [*self._decide(), *records[index:]]
            self._seen.append(key)
            self._held.append(record)
        return []

    def _decide(self) -> Sequence[Record]:
        """The first unknown record has come: which of those before it are a repetition?"""
        self.settled = True
        repeated = _longest_suffix_as_prefix(self._keys, self._seen)
        held, self._held = self._held, []
        if repeated:
            return held[max(0, repeated - self._verified) :]
        # All of them are stored somewhere, but the last stored line is not among them in its place.
        self.gap = True
        return []


def _longest_suffix_as_prefix(stored: "array[int]", seen: "array[int]") -> int:
    """Length of the longest end of `stored` that is also the beginning of `seen`. Linear (prefix function)."""
    text = [*seen, -1, *stored[-len(seen) :]] if seen else []
    borders = [0] * len(text)
    for position in range(1, len(text)):
        length = borders[position - 1]
        while length and text[position] != text[length]:
            length = borders[length - 1]
        borders[position] = length + (text[position] == text[length])
    return borders[-1] if borders else 0
