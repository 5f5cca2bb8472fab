"""The log file of a pod: one record per line, as container runtimes write it for the kubelet.

`<time> stdout F <text>` is a whole line without its newline; `P` marks a part of a line that goes on in the next
record. A line longer than 16 KiB comes in parts, and so does one that stays open, such as a progress bar.
"""

import os
import time

MOST_IN_A_RECORD = 16 * 1024
OPEN_FOR = 0.5  # seconds after which the part of an open line that has come so far is written


def stamp(moment_ns: int) -> bytes:
    """RFC 3339 with nanoseconds, in UTC."""
    seconds, rest = divmod(moment_ns, 1_000_000_000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)).encode() + b".%09dZ" % rest


class LogWriter:
    """Writes what a command says. Not a byte is lost but where the disk is full, and then the log says how many."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._open = b""
        self._open_since = 0.0
        self._lost = 0
        # Time stamps never run backwards within one log, whatever the machine's clock does.
        self._last_ns = 0

    def feed(self, data: bytes) -> None:
        """Take what came from the command, and write every line of it that is whole."""
        head = self._head()
        lines = (self._open + data).split(b"\n")
        records = []
        for line in lines[:-1]:
            text = line
            while len(text) > MOST_IN_A_RECORD:
                records.append(head + b"P " + text[:MOST_IN_A_RECORD])
                text = text[MOST_IN_A_RECORD:]
            records.append(head + b"F " + text)
        was_open, rest = bool(self._open) and len(lines) == 1, lines[-1]
        while len(rest) > MOST_IN_A_RECORD:
            records.append(head + b"P " + rest[:MOST_IN_A_RECORD])
            rest = rest[MOST_IN_A_RECORD:]
        self._open = rest
        if rest and not was_open:
            self._open_since = time.monotonic()
        self._write(records)

    @property
    def due_in(self) -> "float | None":
        """Seconds until the open line has to be written; None if there is none."""
        return max(0.0, self._open_since + OPEN_FOR - time.monotonic()) if self._open else None

    def flush(self) -> None:
        """Write the part of the open line that has come so far."""
        if self._open:
            self._write([self._head() + b"P " + self._open])
            self._open = b""

    def close(self) -> None:
        """The command has ended. A last line without a newline stays one: it is a part that nothing follows."""
        self.flush()
        self._write([])
        os.close(self._file)

    def _head(self) -> bytes:
        self._last_ns = max(time.time_ns(), self._last_ns)
        return stamp(self._last_ns) + b" stdout "

    def _write(self, records: list[bytes]) -> None:
        fresh = sum(map(len, records))
        if self._lost:
            note = b"[beamtime] the disk is full: %d bytes of this log were lost here" % self._lost
            records = [self._head() + b"F " + note, *records]
        data = b"\n".join(records) + b"\n" if records else b""
        written = 0
        try:
            size = os.fstat(self._file).st_size
            while written < len(data):
                written += os.write(self._file, data[written:])
            self._lost = 0
        except OSError:
            # A full disk must not stop the command, nor leave half a record behind.
            self._lost += fresh
            if written:
                os.ftruncate(self._file, size)
