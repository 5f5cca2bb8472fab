"""A container's log as the API server passes it on from the kubelet."""

from collections.abc import AsyncGenerator
from datetime import UTC, datetime

from portal.clusters.kube import facts
from portal.clusters.kube.connection import Connection
from portal.clusters.kube.streams import TROUBLE, Refusal, Session
from portal.clusters.kube.values import count, items, mapping
from portal.clusters.kube.writes import path
from portal.clusters.specs import ContainerRef, LineBroken, LogGone, PassingError

# Seconds without a byte: of a log that is followed, silence is normal, but a dead line looks the same, so it is opened
# anew from time to time.
FOLLOW_SILENCE, READ_SILENCE = 120.0, 30.0
# The kubelet says this with status 200, in place of the log.
_NO_LOG = (b"unable to retrieve container logs for ", b"failed to try resolving symlinks in path ")
# Bytes that hold a time stamp, and little else that would have to be read.
_HEAD = 64
_NOT_YET = ("waiting to start", "ContainerCreating", "PodInitializing", "not available", "is not running")


async def read_log(
    connection: Connection, ref: ContainerRef, *, since: datetime | None, follow: bool
) -> AsyncGenerator[bytes, None]:
    """Bytes as they come, cut anywhere. `since` is cut to whole seconds, as the server cuts it.

    Raises `LogGone`, `LineBroken`, and `PassingError` if the server refuses. An end without an error is the server's
    end of the stream, which does not prove that the container has ended.
    """
    try:
        async with Session(connection) as session:
            query = await _query(session, ref)
            query |= {"timestamps": "true"} | ({"follow": "true"} if follow else {})
            if since is not None:
                query["sinceTime"] = since.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            where = f"{path('Pod', ref.namespace, ref.pod)}/log"
            async with session.get(where, query, silence=FOLLOW_SILENCE if follow else READ_SILENCE) as response:
                first = True
                async for chunk in response.content.iter_any():
                    if first and chunk.startswith(_NO_LOG):
                        raise LogGone(chunk[:200].decode(errors="replace").strip(), passing=False)
                    first = False
                    yield chunk
    except Refusal as error:
        raise _why(error) from error
    except TROUBLE as error:
        raise _broken(error) from error


async def log_head(connection: Connection, ref: ContainerRef) -> bytes:
    """See `gateway.Backend.log_head`. Of the present file only: the kubelet reads no other."""
    try:
        async with Session(connection) as session:
            query = await _query(session, ref) | {"timestamps": "true", "limitBytes": str(_HEAD)}
            where = f"{path('Pod', ref.namespace, ref.pod)}/log"
            async with session.get(where, query, silence=READ_SILENCE) as response:
                head = await response.content.read()
    except Refusal as error:
        raise _why(error) from error
    except TROUBLE as error:
        raise _broken(error) from error
    if head.startswith(_NO_LOG):
        raise LogGone(head[:200].decode(errors="replace").strip(), passing=False)
    return head


async def _query(session: Session, ref: ContainerRef) -> dict[str, str]:
    """Which log to ask for, once it is certain that the pod under this name is the one that is meant."""
    pod = await session.json(path("Pod", ref.namespace, ref.pod), whole=10.0)
    if facts.uid(pod) != ref.pod_uid:
        raise LogGone("Another pod has this name now.", passing=False)
    status = mapping(pod.get("status"))
    lives = {
        str(each.get("name")): count(each.get("restartCount"))
        for group in ("initContainerStatuses", "containerStatuses")
        for each in items(status.get(group))
    }
    restarts = lives.get(ref.container, ref.restart)
    if restarts < ref.restart:
        raise LogGone("The container has not started again yet.", passing=True)
    if restarts > ref.restart + 1:
        raise LogGone("Kubernetes keeps the log of a container's last two lives only.", passing=False)
    previous = {"previous": "true"} if restarts == ref.restart + 1 else {}
    return {"container": ref.container} | previous


def _broken(error: Exception) -> LineBroken:
    words = f"The log's line is broken: {type(error).__name__} {error}".strip()
    return LineBroken(words, silent=isinstance(error, TimeoutError))


def _why(error: Refusal) -> LogGone | PassingError:
    if error.status == 404:
        return LogGone(error.message, passing=False)
    if error.status == 400:
        return LogGone(error.message, passing=any(words in error.message for words in _NOT_YET))
    return PassingError(f"The log cannot be read: {error.message}", retry_after=error.retry_after)
