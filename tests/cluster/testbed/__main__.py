"""`python -m tests.cluster.testbed build|up|down|status`."""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import fields

from . import bed as beds
from . import build, components, host, queues
from .cluster import Cluster
from .configs import Options
from .paths import Layout, TestbedError
from .processes import Processes


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main(arguments: list[str] | None = None) -> int:
    """Run one verb. Exit status 0, or 1 with the reason on stderr (`status`: 1 when it is not up)."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.cluster.testbed", description="A real Kubernetes and Kueue here."
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("build", help="compile what is missing")
    verbs.add_parser("down", help="stop everything and put the machine back")
    verbs.add_parser("status", help="say what runs")
    start = verbs.add_parser("up", help="start it anew; prints KUBECONFIG=...")
    start.add_argument(
        "--kwok-nodes", type=int, default=0, metavar="N", help="pretended nodes to add, with the queue `kwok`"
    )
    for option in fields(Options):
        start.add_argument(f"--{option.name.replace('_', '-')}", metavar="X", help=f"default {option.default}")
    chosen = parser.parse_args(arguments)
    try:
        return _VERBS[chosen.verb](chosen)
    except TestbedError as error:
        say(str(error))
        return 1


def _build(_: argparse.Namespace) -> int:
    host.prepare(say)
    build.ensure(say)
    return 0


def _up(chosen: argparse.Namespace) -> int:
    options = Options.from_environment(**{option.name: getattr(chosen, option.name) for option in fields(Options)})
    with beds.exclusive(say, wait=False):
        cluster = Cluster.of_bed(beds.up(Layout.default(), options, say))
        queues.apply(cluster)
        if chosen.kwok_nodes:
            began = time.monotonic()
            cluster.add_kwok_nodes(chosen.kwok_nodes)
            queues.apply_kwok(cluster, gpus=chosen.kwok_nodes * 8)
            say(f"{chosen.kwok_nodes} pretended nodes after {time.monotonic() - began:.1f} s")
    print(f"KUBECONFIG={cluster.kubeconfig}")
    return 0


def _down(_: argparse.Namespace) -> int:
    with beds.exclusive(say, wait=False):
        beds.down(Layout.default(), say)
    return 0


def _status(_: argparse.Namespace) -> int:
    layout = Layout.default()
    found = beds.attach(layout)
    processes = Processes(layout.processes, layout.logs)
    for name in components.NAMES:
        pid = processes.pid(name)
        print(f"{name:20} {processes.state(name):8} {pid or ''}")
    print(f"KUBECONFIG={found.setting.layout.kubeconfig()}" if found else "not up")
    return 0 if found else 1


_VERBS = {"build": _build, "up": _up, "down": _down, "status": _status}

if __name__ == "__main__":
    sys.exit(main())
