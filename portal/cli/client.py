"""The portal's REST API over one kept connection."""

import http.client
import json
import ssl
from typing import Any
from urllib.parse import urlsplit

from portal.cli.config import Config
from portal.cli.errors import Away, Trouble

PATIENCE = 30.0


class Portal:
    """Reads as one person. A connection that breaks is `Away`; the next call dials anew."""

    def __init__(self, config: Config) -> None:
        parts = urlsplit(config.address)
        self._secure, self._host, self._port = parts.scheme == "https", parts.hostname or "", parts.port
        self._root = f"{parts.path}/api/v1/"
        self._address = config.address
        self._headers = {"Authorization": f"Bearer {config.token}", "Accept": "application/json"}
        self._line: http.client.HTTPConnection | None = None

    def get(self, path: str) -> Any:
        """The JSON of an answer. Raises `Away` for what may pass, `Trouble` for what will not."""
        try:
            status, body = self._ask(path)
        except ssl.SSLCertVerificationError as error:
            self.close()
            raise Trouble(f"The certificate of {self._address} is not trusted: {error.verify_message}.") from error
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise Away(f"{self._address} cannot be reached ({error or type(error).__name__})") from error
        if status == 500 and (words := _damaged(body)):
            raise Trouble(words)
        if status >= 500 or status in (408, 429):
            raise Away(f"{self._address} answered {status}")
        try:
            answer = json.loads(body)
        except ValueError as error:
            raise Trouble(f"{self._address} is no Beamtime portal: its answer is not JSON.") from error
        if status == 200:
            return answer
        raise Trouble(_words(status, answer))

    def close(self) -> None:
        if self._line is not None:
            self._line.close()
        self._line = None

    def _ask(self, path: str) -> tuple[int, bytes]:
        if self._line is None:
            kind = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
            self._line = kind(self._host, self._port, timeout=PATIENCE)
        self._line.request("GET", self._root + path, headers=self._headers)
        answer = self._line.getresponse()
        return answer.status, answer.read()


def _damaged(body: bytes) -> str:
    """What the portal says of a log whose stored copy is damaged, which asking again does not mend; "" of all else."""
    try:
        answer = json.loads(body)
    except ValueError:
        return ""
    if not isinstance(answer, dict) or answer.get("code") != "damaged":
        return ""
    return str(answer.get("detail") or "The log's stored copy is damaged.")


def _words(status: int, answer: Any) -> str:
    if status == 401:
        return "The token is not valid, or no longer. Make a new one on your tokens page, then: beamtime login"
    if status == 404:
        return "There is no such job, or it is not open to you."
    said = answer.get("detail") if isinstance(answer, dict) else None
    return f"{said or 'The portal refused'} ({status})"
