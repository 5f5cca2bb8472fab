"""The reading side of the bus: one fan-out per process, with a bounded queue per subscriber."""

import asyncio
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from portal.core import metrics

QUEUE_LENGTH = 256


@dataclass(frozen=True, slots=True)
class Message:
    """`topic` and the facts announced on it; `lagged` means that earlier ones may be missing: read the store."""

    topic: str
    facts: Mapping[str, object] = field(default_factory=dict)
    lagged: bool = False


class Subscription:
    """One reader's bounded queue. A reader too slow for it gets one message marked `lagged` and must re-read."""

    def __init__(self, hub: "Hub", topics: Iterable[str]) -> None:
        self._hub = hub
        self.topics = frozenset(topics)
        self.loop = asyncio.get_running_loop()
        self.queue: asyncio.Queue[Message] = asyncio.Queue(QUEUE_LENGTH)

    async def get(self) -> Message:
        """The next message; waits for it."""
        return await self.queue.get()

    def drain(self) -> list[Message]:
        """Everything that has come meanwhile; returns at once."""
        found = []
        while not self.queue.empty():
            found.append(self.queue.get_nowait())
        return found

    def put(self, message: Message) -> None:
        """Called on the subscriber's own loop."""
        if self.queue.full():
            metrics.BUS_LAGGED.inc()
            self.drain()
            message = Message(message.topic, message.facts, lagged=True)
        self.queue.put_nowait(message)

    def close(self) -> None:
        """Stop listening."""
        self._hub.remove(self)


class Hub:
    """Fan-out inside one process, safe to feed from any thread. `on_first` is called at the first subscription."""

    def __init__(self, on_first: Callable[["Hub"], None] | None = None) -> None:
        self._lock = threading.Lock()
        self._by_topic: dict[str, set[Subscription]] = defaultdict(set)
        self._on_first = on_first

    def subscribe(self, topics: Iterable[str]) -> Subscription:
        """Listen to some topics; must be called on the loop that will read."""
        subscription = Subscription(self, topics)
        with self._lock:
            for topic in subscription.topics:
                self._by_topic[topic].add(subscription)
            first, self._on_first = self._on_first, None
        if first is not None:
            first(self)
        return subscription

    def remove(self, subscription: Subscription) -> None:
        with self._lock:
            for topic in subscription.topics:
                listeners = self._by_topic.get(topic)
                if listeners is not None:
                    listeners.discard(subscription)
                    if not listeners:
                        del self._by_topic[topic]

    def wants(self, topic: str) -> bool:
        """Whether anybody listens to this topic, so that the others need not even be decoded."""
        return topic in self._by_topic

    def deliver(self, message: Message) -> None:
        """Hand a message to everyone on its topic; returns at once."""
        self.deliver_all((message,))

    def deliver_all(self, messages: Sequence[Message]) -> None:
        """Hand over many messages, waking each loop once; returns at once."""
        by_loop: dict[asyncio.AbstractEventLoop, list[tuple[Subscription, Message]]] = defaultdict(list)
        with self._lock:
            for message in messages:
                for subscription in self._by_topic.get(message.topic, ()):
                    by_loop[subscription.loop].append((subscription, message))
        self._wake(by_loop)

    def lag_all(self) -> None:
        """Tell every subscriber to read the store, because announcements may have been lost."""
        by_loop: dict[asyncio.AbstractEventLoop, list[tuple[Subscription, Message]]] = defaultdict(list)
        with self._lock:
            for subscription in {each for listeners in self._by_topic.values() for each in listeners}:
                topic = min(subscription.topics)
                by_loop[subscription.loop].append((subscription, Message(topic, lagged=True)))
        self._wake(by_loop)

    @staticmethod
    def _wake(by_loop: Mapping[asyncio.AbstractEventLoop, Sequence[tuple[Subscription, Message]]]) -> None:
        for loop, pairs in by_loop.items():
            try:
                loop.call_soon_threadsafe(_put_all, pairs)
            except RuntimeError:
                # The loop was closed with its subscribers still listed: nobody is there to hear it.
                for subscription, _ in pairs:
                    subscription.close()


def _put_all(pairs: Sequence[tuple[Subscription, Message]]) -> None:
    for subscription, message in pairs:
        subscription.put(message)
