"""The reading side of the bus: one fan-out per process, with a bounded queue per subscriber."""

import asyncio
import threading
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

QUEUE_LENGTH = 256


@dataclass(frozen=True, slots=True)
class Message:
    """`topic` and the facts announced on it; `lagged` means that earlier ones were dropped for this subscriber."""

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

    def put(self, message: Message) -> None:
        """Called on the subscriber's own loop."""
        if self.queue.full():
            while not self.queue.empty():
                self.queue.get_nowait()
            message = Message(message.topic, message.facts, lagged=True)
        self.queue.put_nowait(message)

    def close(self) -> None:
        """Stop listening."""
        self._hub.remove(self)


class Hub:
    """Fan-out inside one process, safe to feed from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_topic: dict[str, set[Subscription]] = defaultdict(set)

    def subscribe(self, topics: Iterable[str]) -> Subscription:
        """Listen to some topics; must be called on the loop that will read."""
        subscription = Subscription(self, topics)
        with self._lock:
            for topic in subscription.topics:
                self._by_topic[topic].add(subscription)
        return subscription

    def remove(self, subscription: Subscription) -> None:
        with self._lock:
            for topic in subscription.topics:
                listeners = self._by_topic.get(topic)
                if listeners is not None:
                    listeners.discard(subscription)
                    if not listeners:
                        del self._by_topic[topic]

    def deliver(self, message: Message) -> None:
        """Hand a message to everyone on its topic; returns at once."""
        with self._lock:
            listeners = tuple(self._by_topic.get(message.topic, ()))
        for subscription in listeners:
            if not subscription.loop.is_closed():
                subscription.loop.call_soon_threadsafe(subscription.put, message)


@lru_cache(maxsize=1)
def hub() -> Hub:
    """The one hub of this process."""
    return Hub()
