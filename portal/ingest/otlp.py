"""From an OTLP logs request in JSON to the records of containers' log files. Pure.

The collector must send the runtime's lines as they are; deploy/kubernetes/collector/collector.yaml is how. Its
attribute `beamtime.bytes: iso-8859-1` says that each letter of a body is one byte, because JSON holds no others.
"""

import base64
import binascii
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from portal.clusters.specs import ContainerRef
from portal.logs.policy.collected import Seen, parse_cri

# /var/log/pods/<namespace>_<pod>_<uid>/<container>/<restart>.log, and what rotation adds to the name.
_PATH = re.compile(
    r"/(?P<namespace>[^/_]+)_(?P<pod>[^/_]+)_(?P<uid>[^/_]+)/(?P<container>[^/]+)/(?P<restart>\d{1,9})\.log"
)
# Nanoseconds since the epoch, as a text, because JSON's numbers may be too small; these fit into 63 bits.
_TIME = r"[0-9]{1,18}|[1-8][0-9]{18}"


class Malformed(ValueError):
    """The request is no OTLP logs request in JSON; the message says where."""


@dataclass
class Delivery:
    """What one request brings.

    `read_ns`: when the collector read the newest record of each container, nanoseconds since the epoch; 0: it does not
    say. `strange`: records that are no lines of a container's log file.
    """

    records: dict[ContainerRef, list[Seen]] = field(default_factory=lambda: defaultdict(list))
    read_ns: dict[ContainerRef, int] = field(default_factory=lambda: defaultdict(int))
    strange: int = 0


def delivery_of(request: Any, *, cluster: str) -> Delivery:
    """Raises `Malformed`."""
    found = Delivery()
    for record in _records(request):
        attributes = _attributes(record)
        place = _PATH.search(str(attributes.get("log.file.path", "")))
        offset = attributes.get("log.file.record_offset")
        seen = parse_cri(_body(record, attributes), offset=offset) if place and isinstance(offset, int) else None
        if seen is None or place is None:
            found.strange += 1
            continue
        ref = _container(place, cluster)
        found.records[ref].append(seen)
        found.read_ns[ref] = max(found.read_ns[ref], _time(record.get("observedTimeUnixNano")))
    return found


def _container(place: "re.Match[str]", cluster: str) -> ContainerRef:
    return ContainerRef(
        cluster=cluster,
        namespace=place["namespace"],
        pod=place["pod"],
        pod_uid=place["uid"],
        container=place["container"],
        restart=int(place["restart"]),
    )


def _records(request: Any) -> Iterator[dict[str, Any]]:
    for resource in _list(request, "resourceLogs"):
        for scope in _list(resource, "scopeLogs"):
            for record in _list(scope, "logRecords"):
                if not isinstance(record, dict):
                    raise Malformed("a logRecord is no object")
                yield record


def _list(parent: Any, name: str) -> list[Any]:
    found = parent.get(name, []) if isinstance(parent, dict) else None
    if not isinstance(found, list):
        raise Malformed(f"{name} is no list")
    return found


def _attributes(record: dict[str, Any]) -> dict[str, str | int]:
    """Texts and whole numbers; OTLP writes the latter as texts, because JSON's numbers may be too small for them."""
    found: dict[str, str | int] = {}
    for each in _list(record, "attributes"):
        value = each.get("value") if isinstance(each, dict) else None
        if not isinstance(value, dict):
            continue
        if "stringValue" in value:
            found[str(each.get("key"))] = str(value["stringValue"])
        elif re.fullmatch(r"[0-9]{1,18}", str(value.get("intValue", ""))):
            found[str(each.get("key"))] = int(value["intValue"])
    return found


def _time(value: object) -> int:
    """0 for anything that is no time."""
    text = str(value)
    return int(text) if re.fullmatch(_TIME, text) else 0


def _body(record: dict[str, Any], attributes: dict[str, str | int]) -> bytes:
    body = record.get("body")
    if not isinstance(body, dict):
        return b""
    if "bytesValue" in body:
        try:
            return base64.b64decode(body["bytesValue"], validate=True)
        except (binascii.Error, ValueError, TypeError) as error:
            raise Malformed("a bytesValue is no base64") from error
    text = str(body.get("stringValue", ""))
    if attributes.get("beamtime.bytes") != "iso-8859-1":
        return text.encode("utf-8", "replace")
    try:
        return text.encode("iso-8859-1")
    except UnicodeEncodeError as error:
        raise Malformed("a body has letters that are no bytes, although beamtime.bytes says iso-8859-1") from error
