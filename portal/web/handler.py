"""Django under ASGI, with each request in one thread from the first middleware to the last."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from asgiref.sync import ThreadSensitiveContext, sync_to_async
from django.core.handlers.asgi import ASGIHandler
from django.http import HttpRequest
from django.http.response import HttpResponseBase

# Threads that are kept for the next requests. Under more requests at once there are more.
KEPT = 16


class PagesHandler(ASGIHandler):
    """Every view of ours, and one middleware, is synchronous.

    Left to itself Django runs the others on the event loop, and sends each request from there to its thread and back a
    dozen times, which costs several milliseconds and the loop's attention. And it starts a thread for each request and
    waits for its end, which costs some more.
    """

    def __init__(self) -> None:
        super().__init__()
        self._idle: list[ThreadPoolExecutor] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """In a thread of its own for as long as it lasts, and Django's own context inside is none then."""
        thread = self._idle.pop() if self._idle else ThreadPoolExecutor(1, "request")
        free = False
        try:
            async with ThreadSensitiveContext(executor=thread):
                await super().__call__(scope, receive, send)
            # Also of a visitor who left: Django tells the end of the request in its thread, behind all else.
            free = True
        finally:
            if free and len(self._idle) < KEPT:
                self._idle.append(thread)
            else:
                thread.shutdown(wait=False)

    def load_middleware(self, is_async: bool = False) -> None:
        """As for WSGI, whoever asks."""
        super().load_middleware(is_async=False)

    async def get_response_async(self, request: HttpRequest) -> HttpResponseBase:
        """One way to the thread of this request, and one back."""
        return await sync_to_async(self.get_response, thread_sensitive=True)(request)
