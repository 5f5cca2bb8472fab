"""The reference of a watcher: a raw watch of pods, and one INSERT for each state that counts.

`python -m tests.bench.barewatch KUBECONFIG NAMESPACE DATABASE`
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import psycopg

from tests.bench.rawwatch import api
from tests.bench.visible import phase_of

INSERT = "INSERT INTO bench_seen VALUES (%s, %s) ON CONFLICT DO NOTHING"


def main() -> None:
    """Until it is killed."""
    kubeconfig, namespace, url = sys.argv[1:]
    client: Any = api(Path(kubeconfig))
    address = f"{client.configuration.host}/api/v1/namespaces/{namespace}/pods?watch=1&timeoutSeconds=3600"
    answer = client.rest_client.pool_manager.request("GET", address, preload_content=False)
    print("watching", flush=True)
    rest = b""
    with psycopg.connect(url, autocommit=True) as database:
        for chunk in answer.stream(65536, decode_content=False):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                found = phase_of(json.loads(line)["object"])
                if found is not None:
                    database.execute(INSERT, found)


if __name__ == "__main__":
    main()
