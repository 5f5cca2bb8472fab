"""A stand-in for the log endpoint of an API server that has fifty busy pods, which cost this machine nothing.

    python -m tests.bench.loglines KUBECONFIG FOLDER

Everything else goes to the real API server. A log is one file without rotations, and the same for every pod: lines of
some hundred bytes with their time, evenly spread over each tenth of a second, and sent at its end. `GET /bench/rate/N`
lets each log grow by N lines a second from now on. `FOLDER/relay.kubeconfig` leads here; the line is TLS, as the real
one.
"""

from __future__ import annotations

import asyncio
import ipaddress
import signal
import sys
import time
from bisect import bisect_right
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path

from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.cluster.relay import Relay

NANO = 1_000_000_000
A_SECOND = 10
TICK_NS = NANO // A_SECOND
WORDS = b"epoch 3, loss 0.2718, 412 samples/s, lr 1.0e-04, grad 0.93"


class StandIn(Relay):
    """See above."""

    def __init__(self, kubeconfig: Path, folder: Path) -> None:
        super().__init__(kubeconfig, folder, certificate=certificate(folder))
        self._epoch = int(time.time())
        # From which tick on how many lines come in each.
        self._from, self._each = [0], [0]

    async def answer(self, request: web.Request) -> web.StreamResponse | None:
        words = request.path.strip("/").split("/")
        if words[:2] == ["bench", "rate"]:
            self._from.append(self._now() + 1)
            self._each.append(int(words[2]) // A_SECOND)
            return web.Response(text="ok\n")
        if words[-1] != "log":
            return None
        since = request.query.get("sinceTime")
        begin = 0 if since is None else int(datetime.fromisoformat(since).timestamp() - self._epoch) * A_SECOND
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        await response.prepare(request)
        if "limitBytes" in request.query:
            await response.write(self._head()[: int(request.query["limitBytes"])])
        else:
            await self._send(response, max(0, begin), follow=request.query.get("follow") == "true")
        await response.write_eof()
        return response

    async def _send(self, response: web.StreamResponse, tick: int, *, follow: bool) -> None:
        while follow or tick < self._now():
            late = time.time() - (self._epoch + (tick + 1) / A_SECOND)
            if late < 0:
                await asyncio.sleep(-late)
            if each := self._lines_in(tick):
                await response.write(chunk(self._epoch, tick, each))
            tick += 1

    def _now(self) -> int:
        """The tick that is not over yet."""
        return int((time.time() - self._epoch) * A_SECOND)

    def _lines_in(self, tick: int) -> int:
        return self._each[bisect_right(self._from, tick) - 1]

    def _head(self) -> bytes:
        tick = next((tick for tick, each in zip(self._from, self._each, strict=True) if each), None)
        return b"" if tick is None or tick >= self._now() else chunk(self._epoch, tick, self._lines_in(tick))


@lru_cache(maxsize=600)
def chunk(epoch: int, tick: int, lines: int) -> bytes:
    """What a log says in one tick."""
    begin = epoch * NANO + tick * TICK_NS
    moment = datetime.fromtimestamp(begin // NANO, UTC).strftime("%Y-%m-%dT%H:%M:%S").encode()
    step, first = TICK_NS // lines, begin % NANO
    return b"".join(
        b"%s.%09dZ step %d.%d %s\n" % (moment, first + number * step, tick, number, WORDS) for number in range(lines)
    )


def certificate(folder: Path) -> tuple[Path, Path]:
    """For 127.0.0.1, signed by itself: (certificate, key)."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    today = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(today - timedelta(days=1))
        .not_valid_after(today + timedelta(days=2))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    files = folder / "stand-in.crt", folder / "stand-in.key"
    files[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    files[1].touch(mode=0o600)
    files[1].write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return files


async def main() -> None:
    ending = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ending.set)
    stand_in = StandIn(Path(sys.argv[1]), Path(sys.argv[2]))
    await stand_in.serve(lambda: print(f"serving {stand_in.address}", flush=True), ending)


if __name__ == "__main__":
    asyncio.run(main())
