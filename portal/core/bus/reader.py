"""One reader of the Redis stream per process, in a thread of its own, for as long as the process lives.

A bare read loop dies with Redis and says nothing. This one waits, dials anew, goes on from the last id that it has
seen, and tells every subscriber to look into the store, since what was announced meanwhile may be lost.
"""

import json
import logging
import threading
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from portal.core import metrics
from portal.core.bus.fanout import Hub, Message

logger = logging.getLogger(__name__)

# Redis Streams lose nothing to a slow reader where Pub/Sub cuts it off.
STREAM = "beamtime:bus"

# Seconds that a read waits for news, and that a silent connection is waited for beyond that.
_BLOCK, _SILENCE = 5.0, 5.0
_AT_ONCE = 500
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0


class Reader:
    """Feeds a hub from Redis."""

    def __init__(self, url: str, hub: Hub) -> None:
        self._hub = hub
        self._stop = threading.Event()
        self._client: redis.Redis = redis.Redis.from_url(
            url, socket_timeout=_BLOCK + _SILENCE, socket_connect_timeout=2, retry=Retry(NoBackoff(), 0)
        )
        self._last = ""
        self._thread = threading.Thread(target=self._run, name="bus-reader", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End the thread; waits for it at most a moment."""
        self._stop.set()
        self._client.close()
        self._thread.join(timeout=_BLOCK + 1)

    def _run(self) -> None:
        pause = _FIRST_PAUSE
        while not self._stop.is_set():
            try:
                self._place()
                # What was announced before this moment, or while the line was down, is in the store only.
                self._hub.lag_all()
                pause = _FIRST_PAUSE
                while not self._stop.is_set():
                    self._read()
            except (redis.RedisError, OSError) as error:
                if self._stop.is_set():
                    return
                metrics.BUS_READER_FAULTS.inc()
                logger.warning("bus: Redis cannot be read (%s); trying again in %.1f s", error, pause)
                self._stop.wait(pause)
                pause = min(pause * 2, _LONGEST_PAUSE)
            except Exception:
                metrics.BUS_READER_FAULTS.inc()
                logger.exception("bus: the reader failed; trying again in %.1f s", pause)
                self._stop.wait(pause)
                pause = min(pause * 2, _LONGEST_PAUSE)

    def _place(self) -> None:
        """Where to read from: behind the last id seen, or the newest if the stream does not reach so far any more."""
        newest = self._newest()
        if not self._last or _number(newest) < _number(self._last):
            self._last = newest

    def _newest(self) -> str:
        rows: Any = self._client.xrevrange(STREAM, count=1)
        return rows[0][0].decode() if rows else "0-0"

    def _read(self) -> None:
        answer: Any = self._client.xread({STREAM: self._last}, count=_AT_ONCE, block=int(_BLOCK * 1000))
        for _stream, rows in answer or ():
            messages = []
            for key, fields in rows:
                self._last = key.decode()
                message = self._message(fields)
                if message is not None:
                    messages.append(message)
            self._hub.deliver_all(messages)

    def _message(self, fields: Any) -> Message | None:
        topic = fields.get(b"topic", b"").decode("utf-8", "replace")
        if not self._hub.wants(topic):
            return None
        try:
            facts = json.loads(fields.get(b"facts", b"{}"))
        except ValueError:
            facts = None
        # Whatever it was, it was about this topic.
        return Message(topic, facts) if isinstance(facts, dict) else Message(topic, lagged=True)


def _number(key: str) -> tuple[int, int]:
    milliseconds, _, count = key.partition("-")
    return int(milliseconds), int(count or 0)
