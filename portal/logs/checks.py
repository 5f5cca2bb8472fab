"""Reading sealed logs again and comparing them with what was written down when they were sealed."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

from django.db.models import QuerySet

from portal.core.errors import Gone, Unavailable
from portal.logs.models import Chunk, Segment, Stream
from portal.logs.store import Damaged, segments
from portal.logs.store.portion import lines_in


@dataclass(frozen=True, slots=True)
class Finding:
    """What is wrong with one stream. `unread`: it could not be read, so nothing is known."""

    stream: Stream
    what: str
    unread: bool = False


def check_logs(*, team: str = "") -> Iterator[tuple[Stream, list[Finding]]]:
    """Every stream of the site, or of a team by its slug, with what is wrong with it."""
    rows: QuerySet[Stream] = Stream.objects.select_related("job").order_by("pk")
    if team:
        rows = rows.filter(job__team__slug=team)
    for stream in rows.iterator(chunk_size=200):
        yield stream, check_stream(stream)


def check_stream(stream: Stream) -> list[Finding]:
    """What is wrong with a stream; nothing if all is well."""
    if stream.expired_at is not None:
        left = stream.purged_at is not None and _pieces(stream)
        return [Finding(stream, "has expired, but some of its text is still there")] if left else []
    found = [Finding(stream, what) for what in _continuity(stream)]
    try:
        found += [Finding(stream, what) for what in _text(stream)]
    except (Damaged, Gone) as error:
        found.append(Finding(stream, str(error)))
    except Unavailable as error:
        found.append(Finding(stream, str(error), unread=True))
    if found:
        # It may have grown, been sealed or expired meanwhile: only what stands in a quiet stream is a fault.
        again = Stream.objects.filter(pk=stream.pk).values_list("next_line", "sealed_line", "expired_at").first()
        if again != (stream.next_line, stream.sealed_line, stream.expired_at):
            if again is None:
                return []
            stream.refresh_from_db()
            return check_stream(stream)
    return found


def _pieces(stream: Stream) -> list[tuple[int, int, int, int]]:
    """(first line, lines, first byte, bytes) of each segment and chunk, in order of lines; bytes of a chunk are -1."""
    sealed = Segment.objects.filter(stream=stream).values_list("first_line", "lines", "first_byte", "bytes")
    fresh = Chunk.objects.filter(stream=stream).values_list("first_line", "lines", "first_byte")
    return sorted([*sealed, *((*row, -1) for row in fresh)])


def _continuity(stream: Stream) -> Iterator[str]:
    """Segments and chunks cover lines 1 to `next_line` once each, with the border where the stream says."""
    line, byte = 1, 0
    for first, lines, first_byte, size in _pieces(stream):
        if first != line:
            yield f"lines {line} to {first - 1} are missing" if first > line else f"line {first} is there twice"
        elif byte >= 0 and first_byte != byte:
            yield f"line {first} begins at byte {first_byte} instead of {byte}"
        if (size >= 0) != (first < stream.sealed_line):
            yield f"line {first} is on the wrong side of line {stream.sealed_line}, the first that is not sealed"
        line, byte = first + lines, first_byte + size if size >= 0 else -1
    if line != stream.next_line:
        yield f"the text ends before line {line}, the stream before line {stream.next_line}"


def _text(stream: Stream) -> Iterator[str]:
    """Digests of segments and stream, counts of lines and bytes. Reads everything that is sealed, once."""
    whole, size = hashlib.sha256(), 0
    for pk, digest in Segment.objects.filter(stream=stream).order_by("first_line").values_list("pk", "sha256"):
        ref = segments.by_key(pk)
        part, lines = hashlib.sha256(), 0
        for portion in segments.forward(ref, ref.first_line, None, timed=True, most=ref.size):
            if not portion.lines == lines_in(portion.data) == len(portion.times) // 8:
                yield f"lines {portion.first_line} to {portion.end - 1} are not as many as their block says"
            lines += portion.lines
            part.update(portion.data)
            whole.update(portion.data)
            size += len(portion.data)
        if part.hexdigest() != digest:
            yield f"lines {ref.first_line} to {ref.end - 1}: sha256 {part.hexdigest()} instead of {digest}"
        if lines != ref.lines:
            yield f"lines {ref.first_line} to {ref.end - 1} are {lines}"
    if size != stream.sealed_bytes:
        yield f"{size} bytes are sealed instead of {stream.sealed_bytes}"
    if stream.sealed_at is not None:
        if whole.hexdigest() != stream.sha256:
            yield f"sha256 {whole.hexdigest()} instead of {stream.sha256}"
        if size != stream.bytes:
            yield f"{size} bytes instead of {stream.bytes}"
