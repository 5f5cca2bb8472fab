"""The log of the right container, byte for byte, or a word on why not. Against a FAKE API server."""

import asyncio
from contextlib import aclosing
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from aiohttp import web

from portal.clusters.kube import logs
from portal.clusters.kube.backend import KubeBackend
from portal.clusters.specs import ContainerRef, LogGone, PassingError
from tests.clusters.kube.fake import FakeApi, status
from tests.clusters.kube.stories import NAMESPACE, pod_object

POD = pod_object(uid="pod-a", phase="Running")
LOG = f"/api/v1/namespaces/{NAMESPACE}/pods/{POD['metadata']['name']}/log"
LINE = "2026-11-30T10:00:05.000000001Z Grüße \x1b[31m\r50%\n".encode()


def ref(**changes: Any) -> ContainerRef:
    fields = {
        "cluster": "main",
        "namespace": NAMESPACE,
        "pod": POD["metadata"]["name"],
        "pod_uid": "pod-a",
        "container": "main",
    }
    return ContainerRef(**{**fields, **changes})


def read(backend: KubeBackend, wanted: ContainerRef, *, since: datetime | None = None, follow: bool = False) -> bytes:
    async def all_of_it() -> bytes:
        got = bytearray()
        async with aclosing(backend.read_log(wanted, since=since, follow=follow)) as chunks:
            async for chunk in chunks:
                got += chunk
        return bytes(got)

    return asyncio.run(all_of_it())


def serve(api: FakeApi, answer: Any, pod: dict[str, Any] | None = None) -> list[dict[str, str]]:
    """The log's answer; gives what was asked, request by request."""
    api.put("pods", pod or POD)
    asked: list[dict[str, str]] = []

    def log(request: web.Request) -> Any:
        if request.path != LOG:
            return None
        asked.append(dict(request.query))
        return answer(request) if callable(answer) else answer

    api.hook = log
    return asked


def test_the_log_comes_byte_for_byte(api: FakeApi, backend: KubeBackend) -> None:
    content = LINE * 10_000 + b"\xff\xfe\x00 no newline at the end"
    asked = serve(api, web.Response(body=content))
    assert read(backend, ref()) == content
    assert asked == [{"container": "main", "timestamps": "true"}]


def test_it_is_followed_from_a_whole_second(api: FakeApi, backend: KubeBackend) -> None:
    asked = serve(api, web.Response(body=LINE))
    since = datetime(2026, 11, 30, 12, 0, 5, 999_999, tzinfo=timezone(timedelta(hours=2)))
    read(backend, ref(), since=since, follow=True)
    assert asked[0]["sinceTime"] == "2026-11-30T10:00:05Z"
    assert asked[0]["follow"] == "true"


def test_the_head_of_a_log_is_little_of_the_present_file(api: FakeApi, backend: KubeBackend) -> None:
    asked = serve(api, web.Response(body=LINE))
    assert asyncio.run(backend.log_head(ref())) == LINE
    assert asked == [{"container": "main", "timestamps": "true", "limitBytes": "64"}]


def test_the_head_of_a_log_that_is_gone_says_so(api: FakeApi, backend: KubeBackend) -> None:
    serve(api, web.Response(body=b"unable to retrieve container logs for containerd://1"))
    with pytest.raises(LogGone):
        asyncio.run(backend.log_head(ref()))
    with pytest.raises(LogGone):
        asyncio.run(backend.log_head(ref(pod_uid="an-earlier-one")))


def test_another_pod_of_the_same_name_is_not_read(api: FakeApi, backend: KubeBackend) -> None:
    asked = serve(api, web.Response(body=LINE))
    with pytest.raises(LogGone) as gone:
        read(backend, ref(pod_uid="an-earlier-one"))
    assert not gone.value.passing
    assert asked == []


def test_a_pod_that_is_gone_has_no_log(backend: KubeBackend) -> None:
    with pytest.raises(LogGone) as gone:
        read(backend, ref())
    assert not gone.value.passing


@pytest.mark.parametrize(
    ("message", "passing"),
    [
        ('container "main" in pod "x" is waiting to start: ContainerCreating', True),
        ('container "main" in pod "x" is waiting to start: PodInitializing', True),
        ('container "main" in pod "x" is not available', True),
        ('previous terminated container "main" in pod "x" not found', False),
        ("container nosuch is not valid for pod x", False),
    ],
)
def test_not_yet_and_never_are_told_apart(api: FakeApi, backend: KubeBackend, message: str, passing: bool) -> None:
    serve(api, lambda request: status(400, "BadRequest", message))
    with pytest.raises(LogGone) as gone:
        read(backend, ref())
    assert gone.value.passing is passing


@pytest.mark.parametrize(
    "words", [b"unable to retrieve container logs for containerd://ab12", b"failed to try resolving symlinks in path x"]
)
def test_the_kubelets_excuse_is_not_a_log(api: FakeApi, backend: KubeBackend, words: bytes) -> None:
    serve(api, web.Response(body=words))
    with pytest.raises(LogGone) as gone:
        read(backend, ref())
    assert not gone.value.passing


@pytest.mark.parametrize("code", [429, 500, 502, 503, 401, 403])
def test_a_node_that_does_not_answer_is_passing(api: FakeApi, backend: KubeBackend, code: int) -> None:
    serve(api, lambda request: status(code, "x", "dial tcp 127.0.0.1:10250: connection refused"))
    with pytest.raises(PassingError):
        read(backend, ref())


def test_a_broken_line_gives_what_came_and_then_says_so(api: FakeApi, backend: KubeBackend) -> None:
    async def break_off(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(LINE)
        await asyncio.sleep(0.05)
        assert request.transport is not None
        request.transport.abort()
        return response

    serve(api, break_off)
    got: list[bytes] = []

    async def follow() -> None:
        async with aclosing(backend.read_log(ref(), since=None, follow=True)) as chunks:
            async for chunk in chunks:
                got.append(chunk)

    with pytest.raises(PassingError):
        asyncio.run(follow())
    assert b"".join(got) == LINE


def test_a_silent_line_is_given_up(api: FakeApi, backend: KubeBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "FOLLOW_SILENCE", 0.2)

    async def say_nothing(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await asyncio.sleep(5)
        return response

    serve(api, say_nothing)
    with pytest.raises(PassingError):
        read(backend, ref(), follow=True)


@pytest.mark.parametrize(
    ("restarts", "wanted", "previous"),
    [(0, 0, False), (2, 2, False), (2, 1, True)],
    ids=["first", "now", "the one before"],
)
def test_each_life_of_a_container_has_its_log(
    api: FakeApi, backend: KubeBackend, restarts: int, wanted: int, previous: bool
) -> None:
    lives = {"containerStatuses": [{"name": "main", "restartCount": restarts}]}
    asked = serve(api, web.Response(body=LINE), POD | {"status": lives})
    read(backend, ref(restart=wanted))
    assert ("previous" in asked[0]) is previous


@pytest.mark.parametrize(("restarts", "wanted", "passing"), [(2, 0, False), (0, 1, True)])
def test_a_life_that_is_too_long_ago_or_not_yet(
    api: FakeApi, backend: KubeBackend, restarts: int, wanted: int, passing: bool
) -> None:
    lives = {"containerStatuses": [{"name": "main", "restartCount": restarts}]}
    serve(api, web.Response(body=LINE), POD | {"status": lives})
    with pytest.raises(LogGone) as gone:
        read(backend, ref(restart=wanted))
    assert gone.value.passing is passing
