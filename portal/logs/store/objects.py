"""Bodies of segments in an S3-compatible object store.

A key names its content, so a PUT that is repeated, late, or of somebody who has lost his lease, changes nothing.
"""

import hashlib
import logging
import time
from collections.abc import Iterator
from functools import cache
from math import inf
from typing import Any, Protocol
from uuid import UUID

from django.conf import settings

from portal.core import metrics
from portal.core.errors import Unavailable

logger = logging.getLogger(__name__)

# Seconds. A page waits for this, so it is told soon; what seals tries again anyway.
_CONNECT, _READ = 2, 5
_UNAVAILABLE = (
    "The older part of this log lies in the object store, which does not answer now. "
    "Nothing is lost: try again in a moment."
)


class Shelf(Protocol):
    """A place for bodies. Every method raises `Unavailable` if the place does not answer as it should."""

    def put(self, stream_id: UUID, first_line: int, body: bytes) -> str:
        """Store a body; its key. The same body under the same line is the same key."""

    def get(self, key: str, *, at: int, size: int) -> bytes:
        """A part of a body."""

    def delete(self, stream_id: UUID, *, deadline: float = inf) -> bool:
        """Delete every body of a stream, those included that no row speaks of.

        False if `deadline`, of the monotonic clock, came before the last of them.
        """


class S3Shelf:
    """One bucket. `client`: botocore's, made by `_client`."""

    def __init__(self, client: Any, *, bucket: str, prefix: str) -> None:
        self._client, self._bucket, self._prefix = client, bucket, prefix

    def put(self, stream_id: UUID, first_line: int, body: bytes) -> str:
        key = f"{self._folder(stream_id)}{first_line:015d}-{hashlib.sha256(body).hexdigest()[:32]}"
        self._ask("put_object", Key=key, Body=body, ContentType="application/octet-stream")
        return key

    def get(self, key: str, *, at: int, size: int) -> bytes:
        body: bytes = self._ask("get_object", Key=key, Range=f"bytes={at}-{at + size - 1}")
        if len(body) != size:
            logger.error("logs: object %s gave %d bytes instead of %d", key, len(body), size)
            raise Unavailable(_UNAVAILABLE)
        return body

    def delete(self, stream_id: UUID, *, deadline: float = inf) -> bool:
        if time.monotonic() > deadline:
            return False
        for key in self._keys(self._folder(stream_id)):
            if time.monotonic() > deadline:
                return False
            self._ask("delete_object", Key=key)
        return True

    def _keys(self, folder: str) -> Iterator[str]:
        while True:
            answer = self._ask("list_objects_v2", Prefix=folder, MaxKeys=500)
            rows = [row["Key"] for row in answer.get("Contents", ())]
            yield from rows
            # Whoever asks deletes what is given, so the next list begins with what is left.
            if not answer.get("IsTruncated"):
                return

    def _folder(self, stream_id: UUID) -> str:
        return f"{self._prefix}{stream_id}/"

    def _ask(self, verb: str, **what: Any) -> Any:
        """One request. The body is read here, because reading it may fail like the rest."""
        try:
            answer = getattr(self._client, verb)(Bucket=self._bucket, **what)
            return answer["Body"].read() if verb == "get_object" else answer
        except Exception as error:  # botocore, urllib3 and the socket each have their own kinds
            metrics.OBJECT_STORE_FAULTS.inc()
            name = what.get("Key") or what.get("Prefix")
            logger.warning("logs: %s of %s in bucket %s: %s", verb, name, self._bucket, error)
            raise Unavailable(_UNAVAILABLE) from error


def in_use() -> bool:
    """Whether new segments go to the object store. Those that lie there already are read from there all the same."""
    return bool(settings.BEAMTIME_LOG_STORE == "s3")


@cache
def shelf() -> Shelf:
    """The object store of this site."""
    return S3Shelf(_client(), bucket=settings.BEAMTIME_S3_BUCKET, prefix=settings.BEAMTIME_S3_PREFIX)


def _client() -> Any:
    # Not at the top, although no cycle is broken here: with its client it takes 0.2 s and 20 MiB of each process, a
    # tenth of a start and a sixth of its memory, and only sites with an object store shall spend that.
    from botocore.config import Config  # noqa: PLC0415
    from botocore.session import Session  # noqa: PLC0415

    config = Config(
        connect_timeout=_CONNECT,
        read_timeout=_READ,
        retries={"total_max_attempts": 2, "mode": "standard"},
        # A bucket in the path works with every server; in the host name only where its operator has made it so.
        s3={"addressing_style": "path"},
        # Newer checksums are unknown to many servers that call themselves compatible; the segment has its own digest.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
    )
    return Session().create_client(
        "s3",
        endpoint_url=settings.BEAMTIME_S3_ENDPOINT or None,
        region_name=settings.BEAMTIME_S3_REGION,
        aws_access_key_id=settings.BEAMTIME_S3_ACCESS_KEY or None,
        aws_secret_access_key=settings.BEAMTIME_S3_SECRET_KEY or None,
        config=config,
    )
