"""What is missing in a log, asked from an asynchronous story."""

from asgiref.sync import sync_to_async

from portal.logs import selectors
from portal.logs.models import Stream


@sync_to_async
def trouble_of(stream: Stream) -> str:
    """In sentences; "" while all is well."""
    return selectors.trouble_of(stream)
