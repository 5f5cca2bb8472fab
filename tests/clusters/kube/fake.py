"""A FAKE API server: not Kubernetes, no rules of its own, only answers over HTTP.

It exists for what a real API server cannot be made to do on demand: break a connection after it has stored an object,
tear a line in half, say 410 in either form, fall silent with its sockets open, answer with nonsense. How a real one
behaves is tested against a real one, in tests/cluster.
"""

import asyncio
import itertools
import json
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from aiohttp import web

Object = dict[str, Any]
# Takes over a request: an answer of its own, or None to let it through.
Hook = Callable[[web.Request], Any]

PLURALS = {"Job": "jobs", "Pod": "pods", "Workload": "workloads"}


def status(code: int, reason: str, message: str = "", **more: Any) -> web.Response:
    """A Kubernetes Status as an HTTP answer."""
    body = {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message, **more}
    return web.json_response(body, status=code)


class FakeApi:
    """Runs in a thread of its own. Objects by (plural, namespace, name); `hook` may take over any request."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._versions = itertools.count(1000)
        self._uids = itertools.count(1)
        self._cuts: Counter[str] = Counter()
        self._events: list[tuple[int, str, bytes]] = []
        self.objects: dict[tuple[str, str, str], Object] = {}
        self.requests: Counter[str] = Counter()
        self.bodies: list[tuple[str, str, Object]] = []
        self.hook: Hook | None = None
        # Watches from a version before this one are too old.
        self.oldest = 0
        self.port = 0

    # --- for tests -------------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    @property
    def kubeconfig(self) -> str:
        """Path of a kubeconfig that leads here; an administrator without credentials."""
        return self.write_kubeconfig({})

    def write_kubeconfig(self, user: Object) -> str:
        path = self._folder / "kubeconfig"
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "fake", "cluster": {"server": f"http://127.0.0.1:{self.port}"}}],
            "users": [{"name": "me", "user": user}],
            "contexts": [{"name": "fake", "context": {"cluster": "fake", "user": "me"}}],
            "current-context": "fake",
        }
        path.write_text(json.dumps(config))
        return str(path)

    def put(self, plural: str, thing: Object, *, event: bool = True) -> None:
        """Store an object under a new version; `event` False: without a word to the watches."""
        about = thing["metadata"]
        key = (plural, about["namespace"], about["name"])
        deed = "MODIFIED" if key in self.objects else "ADDED"
        version = next(self._versions)
        self.objects[key] = thing | {"metadata": about | {"resourceVersion": str(version)}}
        if event:
            self.say(plural, deed, self.objects[key], version)

    def remove(self, plural: str, thing: Object, *, event: bool = True, **last: Any) -> None:
        """Delete an object; `last`: fields of metadata that the DELETED event carries."""
        about = thing["metadata"]
        gone = self.objects.pop((plural, about["namespace"], about["name"]))
        if event:
            self.say(plural, "DELETED", gone | {"metadata": gone["metadata"] | last}, next(self._versions))

    def say(self, plural: str, deed: str, thing: object, version: int | None = None) -> None:
        """An event to the watches of a kind, whatever is stored."""
        line = json.dumps({"type": deed, "object": thing}).encode() + b"\n"
        self.utter(plural, line, version)

    def utter(self, plural: str, raw: bytes, version: int | None = None) -> None:
        """Bytes to the watches of a kind, as they are."""
        self._events.append((version or next(self._versions), plural, raw))

    def cut(self, plural: str) -> None:
        """Break the watches of a kind that are open now."""
        self._cuts[plural] += 1

    def forget_history(self) -> None:
        """From now on every version of before is too old."""
        self.oldest = next(self._versions)

    # --- the server ------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        runner = self._loop.run_until_complete(self._start())
        self._ready.set()
        self._loop.run_forever()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(runner.cleanup())
        self._loop.close()

    async def _start(self) -> web.AppRunner:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._serve)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.port = runner.addresses[0][1]
        return runner

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        self.requests[f"{request.method} {request.path}"] += 1
        if request.can_read_body:
            self.bodies.append((request.method, request.path, await request.json()))
        if self.hook is not None:
            answer = self.hook(request)
            if asyncio.iscoroutine(answer):
                answer = await answer
            if answer is not None:
                assert isinstance(answer, web.StreamResponse)
                return answer
        if request.path == "/readyz":
            return web.Response(text="ok")
        return await self._route(request)

    async def _route(self, request: web.Request) -> web.StreamResponse:
        parts = request.path.strip("/").split("/")
        parts = parts[2:] if parts[0] == "api" else parts[3:]
        namespace = ""
        if parts[0] == "namespaces" and len(parts) > 2:
            namespace, parts = parts[1], parts[2:]
        plural, name = parts[0], parts[1] if len(parts) > 1 else ""
        if request.query.get("watch"):
            return await self._watch(request, plural)
        if request.method == "POST":
            return self._create(plural, namespace, self.bodies[-1][2])
        if request.method == "PATCH":
            self.put(plural, self.bodies[-1][2] | {"metadata": {"namespace": "", **self.bodies[-1][2]["metadata"]}})
            return web.json_response(self.bodies[-1][2])
        if not name:
            return self._list(request, plural, namespace)
        found = self.objects.get((plural, namespace, name))
        if found is None:
            return status(404, "NotFound", f'{plural} "{name}" not found')
        if request.method == "DELETE":
            wanted = (self.bodies[-1][2].get("preconditions") or {}).get("uid")
            if wanted and wanted != found["metadata"]["uid"]:
                return status(409, "Conflict", "the uid in the precondition does not match")
            self.remove(plural, found)
        return web.json_response(found)

    def _create(self, plural: str, namespace: str, thing: Object) -> web.Response:
        about = thing["metadata"]
        if (plural, namespace, about["name"]) in self.objects:
            return status(409, "AlreadyExists", f'{plural} "{about["name"]}" already exists')
        fixed = {"uid": f"uid-{next(self._uids)}", "creationTimestamp": "2026-11-30T10:00:00Z"}
        self.put(plural, thing | {"metadata": about | fixed})
        return web.json_response(self.objects[plural, namespace, about["name"]], status=201)

    def _list(self, request: web.Request, plural: str, namespace: str) -> web.Response:
        wanted = dict(part.split("=", 1) for part in request.query.get("labelSelector", "").split(",") if "=" in part)
        found = [
            thing
            for (kind, place, _), thing in sorted(self.objects.items())
            if kind == plural
            and (not namespace or place == namespace)
            and wanted.items() <= thing["metadata"].get("labels", {}).items()
        ]
        limit, start = int(request.query.get("limit", "500")), int(request.query.get("continue", "0"))
        more = str(start + limit) if start + limit < len(found) else ""
        metadata = {"resourceVersion": str(next(self._versions)), "continue": more}
        return web.json_response({"metadata": metadata, "items": found[start : start + limit]})

    async def _watch(self, request: web.Request, plural: str) -> web.StreamResponse:
        seen = int(request.query["resourceVersion"])
        if seen < self.oldest:
            return status(410, "Expired", "too old resource version")
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        cuts = self._cuts[plural]
        while request.transport is not None and not request.transport.is_closing():
            for version, kind, raw in [event for event in self._events if event[0] > seen]:
                seen = max(seen, version)
                if kind == plural:
                    await response.write(raw)
            if self._cuts[plural] > cuts:
                request.transport.abort()
            await asyncio.sleep(0.005)
        return response
