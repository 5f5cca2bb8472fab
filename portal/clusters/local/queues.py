"""The cluster's queues as a file."""

from collections.abc import Mapping
from dataclasses import asdict
from decimal import Decimal
from pathlib import Path
from typing import Any

from portal.clusters.local.runner import files
from portal.clusters.specs import FlavorQuota, FlavorSpec, QueueSnapshot, QueueSpec

NOTHING = QueueSnapshot(flavors=(), queues=())


def write(path: Path, snapshot: QueueSnapshot) -> None:
    """Replace the queues. Decimals are kept as text, so that no digit is lost."""
    data = asdict(snapshot)
    for queue in data["queues"]:
        for quota in queue["quotas"]:
            limit = quota["borrowing_limit"]
            quota["nominal"], quota["borrowing_limit"] = str(quota["nominal"]), None if limit is None else str(limit)
    files.write_json(str(path), data)


class Reader:
    """The queues, read again only where the file changed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: tuple[int, int, int] | None = None
        self._snapshot = NOTHING

    def read(self) -> QueueSnapshot:
        """What stands in the file; no queues at all if there is none."""
        try:
            facts = self._path.stat()
        except FileNotFoundError:
            self._seen, self._snapshot = None, NOTHING
            return NOTHING
        seen = (facts.st_ino, facts.st_mtime_ns, facts.st_size)
        if seen != self._seen:
            self._seen, self._snapshot = seen, _parse(files.read_json(str(self._path)) or {})
        return self._snapshot


def _parse(data: Mapping[str, Any]) -> QueueSnapshot:
    flavors = (
        FlavorSpec(**{**flavor, "node_labels": tuple((name, value) for name, value in flavor["node_labels"])})
        for flavor in data.get("flavors", ())
    )
    queues = (
        QueueSpec(**{**queue, "quotas": tuple(_quota(quota) for quota in queue["quotas"])})
        for queue in data.get("queues", ())
    )
    return QueueSnapshot(flavors=tuple(flavors), queues=tuple(queues))


def _quota(data: Mapping[str, Any]) -> FlavorQuota:
    limit = data["borrowing_limit"]
    return FlavorQuota(
        flavor=data["flavor"],
        resource=data["resource"],
        nominal=Decimal(data["nominal"]),
        borrowing_limit=None if limit is None else Decimal(limit),
    )
