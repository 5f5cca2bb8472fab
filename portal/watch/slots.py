"""A bounded number of places, given in the order of asking."""

import asyncio
from types import TracebackType

from portal.watch.tally import being


class Slots:
    """`async with slots:` holds one of `places`. `crowded`: somebody waits, so a place held for long should be lent;
    `taken`: how many are held."""

    def __init__(self, places: int) -> None:
        self._places = asyncio.Semaphore(places)
        self._waiting = self.taken = 0

    @property
    def crowded(self) -> bool:
        return self._waiting > 0

    async def __aenter__(self) -> None:
        self._waiting += 1
        try:
            with being("waiting"):
                await self._places.acquire()
            self.taken += 1
        finally:
            self._waiting -= 1

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.taken -= 1
        self._places.release()
