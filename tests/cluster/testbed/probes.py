"""Ask until something holds, with a deadline and a sentence for the case that it never does."""

from __future__ import annotations

import contextlib
import http.client
import socket
import ssl
import time
from collections.abc import Callable, Iterable
from typing import TypeVar

from .paths import TestbedError

Answer = TypeVar("Answer")
# Below the range from which Linux takes the local ports of outgoing connections (32768 and up). A client that keeps
# trying a dead port *inside* that range can be given the very same port for its own end and then talks to itself.
PORTS = range(21000, 29000)


def until(probe: Callable[[], Answer | None], *, seconds: float, what: str, pause: float = 0.1) -> Answer:
    """The first true answer of `probe`.

    Raises TestbedError, with `what`, when there is none within `seconds`.
    """
    deadline = time.monotonic() + seconds
    while True:
        answer = probe()
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise TestbedError(f"after {seconds:.0f} s still waiting for: {what}")
        time.sleep(pause)


def answers(port: int, path: str, *, tls: bool = False) -> bool:
    """True if a GET on loopback answers 200. Certificates are not checked."""
    connection: http.client.HTTPConnection
    if tls:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=2, context=context)
    else:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    with contextlib.closing(connection):
        try:
            connection.request("GET", path)
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False


def free_ports(names: Iterable[str]) -> dict[str, int]:
    """A free loopback port for each name."""
    numbers = iter(PORTS)
    chosen: dict[str, int] = {}
    for name in names:
        for number in numbers:
            with socket.socket() as probe:
                try:
                    probe.bind(("127.0.0.1", number))
                except OSError:
                    continue
            chosen[name] = number
            break
        else:
            raise TestbedError(f"no free port left between {PORTS.start} and {PORTS.stop}")
    return chosen
