"""Leaving a service in peace that did not answer a moment ago."""

import time


class Rest:
    """What only hurries things up must not be waited for again and again while it does not answer."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._until = 0.0

    @property
    def on(self) -> bool:
        """Whether to leave it in peace still."""
        return time.monotonic() < self._until

    def begin(self) -> None:
        """It has just not answered."""
        self._until = time.monotonic() + self._seconds
