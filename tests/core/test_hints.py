"""A hint hurries a job up and is never waited for."""

import socket
import threading
from collections.abc import Iterator
from contextlib import closing

import pytest
from celery import Celery, current_app
from django.conf import settings

from portal.core import hints
from portal.core.rest import Rest


class DeafBroker:
    """Takes every call and hangs up."""

    def __init__(self) -> None:
        self.calls = 0
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"redis://127.0.0.1:{self._socket.getsockname()[1]}/0"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                line, _ = self._socket.accept()
            except OSError:
                return
            self.calls += 1
            line.close()

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def deaf(monkeypatch: pytest.MonkeyPatch) -> Iterator[DeafBroker]:
    """The portal's own Celery settings, with a broker that does not answer."""
    before = current_app._get_current_object()  # type: ignore[attr-defined]
    with closing(DeafBroker()) as broker:
        app = Celery("deaf", broker=broker.url, set_as_current=True)
        app.conf.broker_transport_options = settings.REDIS_BROKER
        monkeypatch.setattr(hints, "_broker", Rest(60))
        try:
            yield broker
        finally:
            app.close()
            before.set_current()
            before.set_default()


def test_a_broker_that_does_not_answer_is_asked_once_and_then_left_in_peace(deaf: DeafBroker) -> None:
    for _ in range(3):
        hints._send("jobs.dispatch", ("an attempt",))
    assert deaf.calls == 1
