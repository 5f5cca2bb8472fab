"""Where the lines lie."""

from portal.logs.store.chunks import DatabaseStore
from portal.logs.store.interface import Store

_STORE: Store = DatabaseStore()


def store() -> Store:
    """The store of this site."""
    return _STORE
