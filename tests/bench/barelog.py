"""The reference of a follower: reads logs over HTTP/1.1 as fast as they come, counts, and keeps nothing.

    python -m tests.bench.barelog KUBECONFIG PATH [PATH ...]

Prints a line of JSON twice a second: lines and bytes so far, the lag of the slowest in seconds, and whether it was all.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import sys
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import aiohttp
from kubernetes.client import Configuration

from tests.bench.rawwatch import api

LOOK = 0.5


@dataclass
class Log:
    path: str
    lines: int = 0
    size: int = 0
    last: bytes = b""

    async def read(self, session: aiohttp.ClientSession) -> None:
        async with session.get(self.path) as answer:
            answer.raise_for_status()
            async for data in answer.content.iter_any():
                self.size += len(data)
                self.lines += data.count(b"\n")
                self.last = data

    def lag(self) -> float | None:
        """Seconds since the last line was written, if what came last shows its beginning."""
        begin = self.last.rfind(b"\n", 0, len(self.last) - 1) + 1
        try:
            # With whole microseconds, and the zone that Kubernetes always has.
            moment = datetime.fromisoformat(self.last[begin : begin + 26].decode() + "Z")
        except ValueError:
            return None
        return time.time() - moment.timestamp()


async def main(kubeconfig: Path, paths: list[str]) -> None:
    configuration = api(kubeconfig).configuration
    logs = [Log(path) for path in paths]
    token = configuration.get_api_key_with_prefix("BearerToken")
    headers = {"Accept-Encoding": "identity"} | ({"Authorization": token} if token else {})
    session = aiohttp.ClientSession(
        configuration.host,
        headers=headers,
        connector=aiohttp.TCPConnector(limit=0, ssl=_tls(configuration)),
        timeout=aiohttp.ClientTimeout(total=None),
    )
    async with session, asyncio.TaskGroup() as group:
        began = time.monotonic()
        reading = [group.create_task(log.read(session)) for log in logs]
        while not all(task.done() for task in reading):
            await asyncio.wait(reading, timeout=LOOK)
            lags = [lag for log in logs if (lag := log.lag()) is not None]
            facts = {
                "at": time.time(),
                "seconds": time.monotonic() - began,
                "lines": sum(log.lines for log in logs),
                "bytes": sum(log.size for log in logs),
                "lag": max(lags, default=0.0),
                "done": all(task.done() for task in reading),
            }
            print(json.dumps(facts), flush=True)


def _tls(configuration: Configuration) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
    if configuration.cert_file:
        context.load_cert_chain(configuration.cert_file, configuration.key_file)
    return context


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2:]))
