"""All followers of a cluster: started when a container starts, told when it ends."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable

from portal.clusters.gateway import Backend
from portal.clusters.specs import AttemptFacts, ContainerFacts, ContainerRef, PodFacts
from portal.core.leases import Fence, FencedOff
from portal.watch.desk import Desk
from portal.watch.facts import Key, containers_with_log, key_of, pod_is_over
from portal.watch.follower import Follower
from portal.watch.slots import Slots

logger = logging.getLogger(__name__)

# Connections to log endpoints at the same time.
PLACES = 200
# Seconds that followers have to store what they hold after the order to stop.
FAREWELL = 10.0


class Followers:
    """`on_done` is called with the attempt whose stream has become complete; `on_fenced` when a write was refused
    because somebody else leads now; `file_bytes`: at which size the kubelet begins a new file of a log."""

    def __init__(
        self,
        *,
        backend: Backend,
        desk: Desk,
        fence: Fence | None,
        on_done: Callable[[Key], None],
        on_fenced: Callable[[], None],
        file_bytes: int,
        places: int = PLACES,
    ) -> None:
        self._backend, self._desk, self._fence = backend, desk, fence
        self._on_done, self._on_fenced = on_done, on_fenced
        self._slots, self._file_bytes = Slots(places), file_bytes
        self._stop = asyncio.Event()
        self._running: dict[ContainerRef, Follower] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._done: dict[Key, set[ContainerRef]] = defaultdict(set)

    def see(self, facts: AttemptFacts) -> None:
        """Start what has started, and pass on what has ended. Returns at once."""
        key = key_of(facts)
        for ref, pod, life in containers_with_log(facts):
            if ref in self._done[key]:
                continue
            follower = self._running.get(ref) or self._start(key, ref, pod, life)
            follower.gone = pod.gone
            if pod.deletion_requested_at is not None:
                follower.deleting.set()
            if life.state == "terminated" or pod_is_over(pod):
                follower.ended.set()

    def are_done(self, facts: AttemptFacts) -> bool:
        """Whether every log that these facts know of is stored to its end."""
        done = self._done[key_of(facts)]
        return all(ref in done for ref, _pod, _life in containers_with_log(facts))

    def forget(self, key: Key) -> None:
        """The attempt will not be heard of again."""
        self._done.pop(key, None)

    async def close(self) -> None:
        """Let every follower store what it holds, then end them."""
        self._stop.set()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=FAREWELL)
        await self.abandon()

    async def abandon(self) -> None:
        """End every follower at once, as after the loss of the lease."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _start(self, key: Key, ref: ContainerRef, pod: PodFacts, life: ContainerFacts) -> Follower:
        follower = Follower(
            job_id=key[0],
            attempt=key[1],
            pod_index=pod.index,
            ref=ref,
            backend=self._backend,
            desk=self._desk,
            slots=self._slots,
            fence=self._fence,
            stop=self._stop,
            started_at=life.started_at,
            file_bytes=self._file_bytes,
        )
        self._running[ref] = follower
        task = asyncio.create_task(self._follow(key, follower), name=f"log of {ref.pod}/{ref.container}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return follower

    async def _follow(self, key: Key, follower: Follower) -> None:
        try:
            if await follower.run():
                self._done[key].add(follower.ref)
                self._on_done(key)
        except FencedOff:
            self._on_fenced()
        finally:
            self._running.pop(follower.ref, None)
