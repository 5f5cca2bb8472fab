"""Django under ASGI, with each request in one thread from the first middleware to the last."""

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIHandler
from django.http import HttpRequest
from django.http.response import HttpResponseBase


class PagesHandler(ASGIHandler):
    """Every view of ours, and one middleware, is synchronous.

    Left to itself Django runs the others on the event loop, and sends each request from there to its thread and back a
    dozen times, which costs several milliseconds and the loop's attention.
    """

    def load_middleware(self, is_async: bool = False) -> None:
        """As for WSGI, whoever asks."""
        super().load_middleware(is_async=False)

    async def get_response_async(self, request: HttpRequest) -> HttpResponseBase:
        """One way to the thread of this request, and one back."""
        return await sync_to_async(self.get_response, thread_sensitive=True)(request)
