"""Logs as files: one compressed, or all of a job in one archive. Streamed: a portion is all that is held at once."""

import base64
import io
import re
import tarfile
from collections.abc import AsyncIterator, Sequence

from isal import isal_zlib

from portal.core.errors import Corrupt
from portal.logs.models import Stream
from portal.logs.policy import gap_words
from portal.logs.selectors import content_async, expired_words

_BLOCK = tarfile.BLOCKSIZE
_FILLER = 256 * 1024


async def gzipped(portions: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The same bytes in the gzip format."""
    packer = isal_zlib.compressobj(2, isal_zlib.DEFLATED, 31)
    async for portion in portions:
        if packed := packer.compress(portion):
            yield packed
    yield packer.flush()


def proof(stream: Stream) -> dict[str, str]:
    """Headers of a plain download of the whole text: how long it will be, and its digest once the log is sealed.

    https://www.rfc-editor.org/rfc/rfc9530.html#name-the-repr-digest-field; nobody between may change the bytes.
    """
    headers = {"Cache-Control": "private, no-transform"}
    if stream.completed_at is not None:
        headers["Content-Length"] = str(stream.bytes)
    if stream.completed_at is not None and stream.sha256:
        headers["Repr-Digest"] = f"sha-256=:{base64.b64encode(bytes.fromhex(stream.sha256)).decode()}:"
    return headers


def file_name(stream: Stream) -> str:
    """`pod.container.log`, and which start of the container if not the first; characters of names only.

    Every download of a log is called so.
    """
    restart = f".restart-{stream.restart}" if stream.restart else ""
    return re.sub(r"[^A-Za-z0-9._-]", "_", f"{stream.pod_name}.{stream.container}{restart}") + ".log"


async def archive(streams: Sequence[Stream], *, folder: str) -> AsyncIterator[bytes]:
    """A tar file: every log as long as it was at this moment, then `INDEX.txt` with lines, digests and gaps.

    From where a stored copy is damaged on, the file says so and is filled with line feeds, and the index says it too:
    one log does not cost the others. Raises in the middle if a text cannot be had now, so that no archive looks whole
    that is not.
    """
    names: dict[str, int] = {}
    index = []
    for stream in streams:
        name = file_name(stream)
        names[name] = names.get(name, 0) + 1
        if names[name] > 1:  # a later attempt may use the names of an earlier one again
            name = name.removesuffix(".log") + f".{names[name]}.log"
        index.append(_about(stream, name))
        if stream.expired_at is not None:
            continue
        yield _head(f"{folder}/{name}", stream.bytes, stream)
        left = stream.bytes
        try:
            async for portion in content_async(stream):
                if not left:
                    break
                yield portion[:left]
                left -= min(left, len(portion))
        except Corrupt as error:
            index.append(f"  damaged: only its first {stream.bytes - left:,} bytes are here. {error}\n")
            async for portion in _instead(str(error), left):
                yield portion
        yield bytes(-stream.bytes % _BLOCK)
    text = "".join(index).encode()
    yield _head(f"{folder}/INDEX.txt", len(text), streams[0] if streams else None) + text + bytes(-len(text) % _BLOCK)
    yield bytes(2 * _BLOCK)


async def _instead(words: str, size: int) -> AsyncIterator[bytes]:
    """So many bytes: these words, and line feeds."""
    said = f"\n[{words}]\n".encode()[:size]
    yield said
    for left in range(size - len(said), 0, -_FILLER):
        yield b"\n" * min(left, _FILLER)


def _head(name: str, size: int, stream: Stream | None) -> bytes:
    info = tarfile.TarInfo(name)
    info.size = size
    info.mode = 0o644
    moment = (stream.completed_at or stream.created_at) if stream is not None else None
    info.mtime = int(moment.timestamp()) if moment is not None else 0
    return info.tobuf(format=tarfile.PAX_FORMAT)


def _about(stream: Stream, name: str) -> str:
    """What `INDEX.txt` says of a log."""
    said = io.StringIO()
    state = "complete" if stream.completed_at else "still being written"
    said.write(
        f"{name}\n  attempt {stream.attempt_number}, {stream.next_line - 1:,} lines, {stream.bytes:,} bytes, {state}\n"
    )
    if stream.sha256:
        said.write(f"  sha256 {stream.sha256}\n")
    if stream.expired_at is not None:
        said.write(f"  not in this archive. {expired_words(stream)}\n")
    for gap in stream.gaps.all():
        said.write(f"  {gap_words(gap)}\n")
    return said.getvalue()
