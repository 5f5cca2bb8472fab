"""What all sockets have in common: the handshake, the watch over rights, the end. README.md has the protocol.

The order matters: authorise, then subscribe, then read the store, then forward. Whatever changes between reading and
subscribing is then heard twice at worst, and never missed.
"""

import asyncio
import json
import logging
import random
from abc import ABC, abstractmethod
from collections.abc import Iterable
from enum import IntEnum
from typing import Any, ClassVar
from urllib.parse import parse_qs

from portal.core import bus, metrics
from portal.core.errors import Corrupt, Gone, Missing, Unavailable
from portal.live import seats
from portal.live.access import credentials_of, identify
from portal.live.asgi import Application, Receive, Scope, Send
from portal.live.threads import in_thread
from portal.logs import damage
from portal.teams.models import User

logger = logging.getLogger(__name__)

# Seconds between two looks at whether session, token and rights are still good; announced changes are seen at once.
RECHECK = 25.0
# Nothing that a client says is needed. Some libraries ping by text; more than this is a fault or an attack.
MOST_SAID = 64
MOST_SAID_BYTES = 64 * 1024
# Put into a socket's queue after each look, so that a lost announcement costs no more than that time.
LOOK = bus.Message("look", {"look": True})
# Seconds for which the end is tried to be told to a client that may not read any more.
PARTING = 5.0
# Bytes that a WebSocket's reason may have (RFC 6455, 5.5: a control frame has 125, two of them are the code).
_LONGEST_REASON = 123


class Close(IntEnum):
    """Why a socket was closed. README.md says after which of them a client may ask again, and when."""

    DONE = 1000
    TRY_AGAIN = 1013
    BAD_REQUEST = 4400
    SIGN_IN = 4401
    NO_LONGER_YOURS = 4403
    NOT_FOUND = 4404
    EXPIRED = 4410
    TOO_MUCH = 4413
    TOO_MANY = 4429
    DAMAGED = 4500


WORDS = {
    Close.DONE: "",
    Close.TRY_AGAIN: "Not available at the moment.",
    Close.BAD_REQUEST: "from is a line number, 1 or more.",
    Close.SIGN_IN: "Sign in again.",
    Close.NO_LONGER_YOURS: "This is no longer open to you.",
    Close.NOT_FOUND: "Not found.",
    Close.EXPIRED: "This log has expired.",
    Close.TOO_MUCH: "This is a place to listen: send less.",
    Close.TOO_MANY: f"At most {seats.MOST} live connections at a time.",
    Close.DAMAGED: damage.WORDS,
}


class Closing(Exception):
    """Ends a socket with a code."""

    def __init__(self, code: Close) -> None:
        super().__init__(code.name)
        self.code = code


class Socket(ABC):
    """One connection. A subclass finds its subject, names its topics, and talks."""

    noun: ClassVar[str]

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._receive, self._raw_send = receive, send
        self._credentials = credentials_of(scope)
        self._transport = "events" if scope["type"] == "http" else "websocket"
        self._sent = metrics.LIVE_FRAMES.labels(self._transport)
        self.key: str = scope["url_route"]["kwargs"].get("key", "")
        self.query = parse_qs(scope.get("query_string", b"").decode("latin-1"))

    @classmethod
    def as_asgi(cls) -> Application:
        """The application for a route."""

        async def application(scope: Scope, receive: Receive, send: Send) -> None:
            await cls(scope, receive, send).serve()

        return application

    @abstractmethod
    def find(self, user: User) -> Any:
        """The subject, if this person may see it; in a thread. Raises `Missing` for foreign, absent and malformed."""

    @abstractmethod
    def topics(self, subject: Any) -> Iterable[str]:
        """What to listen to."""

    @abstractmethod
    async def talk(self, subject: Any, news: bus.Subscription) -> None:
        """Say what there is and then what is new; return when nothing can follow."""

    async def send_json(self, body: object) -> None:
        await self.send_text(json.dumps(body, separators=(",", ":")))

    async def send_text(self, text: str) -> None:
        """One frame; waits while the client is slow, which is what bounds the memory."""
        await self._raw_send({"type": "websocket.send", "text": text})
        self._sent.inc()

    # --- the course of a connection --------------------------------------------------------------------------------

    async def serve(self) -> None:
        """From handshake to end."""
        if (await self._receive())["type"] != "websocket.connect":
            return
        # Accepted before anything is known: a browser sees the code of a closed socket, but not that of a refused one.
        await self._raw_send({"type": "websocket.accept"})
        try:
            await self._as_somebody()
        except Closing as end:
            await self._close(end.code)
        except Unavailable:
            await self._close(Close.TRY_AGAIN)
        except Corrupt:
            await self._close(Close.DAMAGED)
        except Gone as error:
            await self._close(Close.EXPIRED, str(error))
        except OSError:
            # The client went away while something was sent to it.
            return
        except Exception:
            logger.exception("live: a socket for a %s failed", self.noun)
            await self._close(Close.TRY_AGAIN)

    async def _as_somebody(self) -> None:
        user = await in_thread(identify, self._credentials)
        if user is None:
            raise Closing(Close.SIGN_IN)
        if not seats.take(user.pk):
            raise Closing(Close.TOO_MANY)
        try:
            with metrics.LIVE_VIEWERS.labels(self._transport, self.noun).track_inprogress():
                await self._with_subject(user)
        finally:
            seats.give_back(user.pk)

    async def _with_subject(self, user: User) -> None:
        try:
            subject = await in_thread(self.find, user)
        except Missing:
            raise Closing(Close.NOT_FOUND) from None
        rights = bus.hub().subscribe([f"user:{user.pk}"])
        news = bus.hub().subscribe(self.topics(subject))
        try:
            await self._run(subject, rights, news)
        finally:
            rights.close()
            news.close()

    async def _run(self, subject: Any, rights: bus.Subscription, news: bus.Subscription) -> None:
        """Talk until there is nothing more to say, the client leaves, or the right to listen ends."""
        talk = asyncio.create_task(self.talk(subject, news))
        others = [asyncio.create_task(self._guard(rights, news)), asyncio.create_task(self._until_left())]
        try:
            await asyncio.wait([talk, *others], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (talk, *others):
                task.cancel()
            results = await asyncio.gather(talk, *others, return_exceptions=True)
        # Nothing is sent from here on but the end.
        for result in (results[1], results[2], results[0]):
            if isinstance(result, Exception):
                raise result
        if not talk.cancelled():
            raise Closing(Close.DONE)

    async def _guard(self, rights: bus.Subscription, news: bus.Subscription) -> None:
        """Raises `Closing` once session, token or rights are no longer good."""
        while True:
            try:
                # Spread, so that the sockets of a restarted server do not all ask at the same moment.
                async with asyncio.timeout(RECHECK * random.uniform(0.8, 1.1)):  # noqa: S311
                    await rights.get()
                rights.drain()
            except TimeoutError:
                pass
            user = await in_thread(identify, self._credentials)
            if user is None:
                raise Closing(Close.SIGN_IN)
            try:
                await in_thread(self.find, user)
            except Missing:
                raise Closing(Close.NO_LONGER_YOURS) from None
            news.put(LOOK)

    async def _until_left(self) -> None:
        """Returns when the client has gone. What it says is not kept; raises `Closing` if it says too much."""
        said = size = 0
        while (message := await self._receive())["type"] != "websocket.disconnect":
            said += 1
            size += len(message.get("text") or "") + len(message.get("bytes") or b"")
            if said > MOST_SAID or size > MOST_SAID_BYTES:
                raise Closing(Close.TOO_MUCH)

    async def _close(self, code: Close, words: str = "") -> None:
        """Say why it ends, in these words if there is room for them; not for longer than `PARTING`.

        To a client that has stopped reading nothing can be said, and its task must not wait for it for ever.
        """
        room = self._transport == "events" or len(words.encode()) <= _LONGEST_REASON
        reason = words if words and room else WORDS[code]
        try:
            async with asyncio.timeout(PARTING):
                await self._raw_send({"type": "websocket.close", "code": int(code), "reason": reason})
        except (OSError, RuntimeError):  # `TimeoutError` is one of the first
            return


async def nothing_here(scope: Scope, receive: Receive, send: Send) -> None:
    """An address that is none: looks like a thing that does not exist."""
    await receive()
    await send({"type": "websocket.accept"})
    await send({"type": "websocket.close", "code": int(Close.NOT_FOUND), "reason": WORDS[Close.NOT_FOUND]})
