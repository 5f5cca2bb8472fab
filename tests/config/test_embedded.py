"""Starting everything in one process: only once, and only for this machine."""

import socket
from pathlib import Path

import pytest
from pytest_django import Settings

from portal.config.embedded import CannotStart, is_loopback, listen, only_one

EVERYWHERE = "0.0.0.0"  # noqa: S104 - what is to be refused


def test_a_second_start_on_the_same_data_is_refused_with_whose_it_is(tmp_path: Path) -> None:
    with (
        only_one(tmp_path, "http://127.0.0.1:8000"),
        pytest.raises(CannotStart) as refused,
        only_one(tmp_path, "http://127.0.0.1:8001"),
    ):
        pass
    assert "at http://127.0.0.1:8000" in str(refused.value)
    assert "BEAMTIME_DATA_DIR" in str(refused.value)
    with only_one(tmp_path, "http://127.0.0.1:8001"):
        pass


def test_a_port_in_use_is_named_with_the_remedy() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(CannotStart) as refused:
            listen("127.0.0.1", port)
    assert str(port) in str(refused.value)
    assert f"make demo PORT={port + 1 if port < 65535 else 8001}" in str(refused.value)


def test_a_free_port_is_held_from_then_on() -> None:
    with listen("127.0.0.1", 0) as held, pytest.raises(CannotStart):
        listen("127.0.0.1", held.getsockname()[1])


@pytest.mark.parametrize("host", [EVERYWHERE, "::", "192.0.2.7", "portal.example.org"])
def test_an_address_that_others_can_reach_needs_to_be_allowed(settings: Settings, host: str) -> None:
    settings.BEAMTIME_LOOPBACK_ONLY = True
    with pytest.raises(CannotStart, match="BEAMTIME_ALLOW_LOCAL_BACKEND"):
        listen(host, 0)


def test_an_operator_may_allow_it(settings: Settings) -> None:
    settings.BEAMTIME_LOOPBACK_ONLY = False
    with listen(EVERYWHERE, 0) as held:
        assert held.getsockname()[1]


def test_loopback_is_told_from_the_rest() -> None:
    assert [is_loopback(host) for host in ("127.0.0.1", "127.9.9.9", "::1", "localhost")] == [True] * 4
    assert [is_loopback(host) for host in (EVERYWHERE, "::", "10.0.0.1", "example.org")] == [False] * 4
