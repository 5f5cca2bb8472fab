"""Where the lines lie."""

from portal.logs.store.blocks import Damaged
from portal.logs.store.interface import Store
from portal.logs.store.lines import LineStore

__all__ = ["Damaged", "Store", "store"]

_STORE: Store = LineStore()


def store() -> Store:
    """The store of this site."""
    return _STORE
