"""How to reach one cluster: address, trust and credentials from a kubeconfig or the pod's service account, and the
synchronous calls. The only module that imports the Kubernetes client; nothing imports this one before it is needed.
"""

import json
import logging
import os
import ssl
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import urllib3
from kubernetes.client.configuration import Configuration
from kubernetes.client.rest import RESTClientObject, should_bypass_proxies
from kubernetes.config import load_incluster_config, load_kube_config

from portal.clusters.specs import PassingError

logger = logging.getLogger(__name__)

# Seconds: to connect, and for the whole answer.
CONNECT, WHOLE = 3.0, 10.0
POOL = 32
# Credentials that were just read again and are still refused will not be better a moment later.
RELOAD_AT_MOST_EVERY = 10.0


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP answer. `retry_after` in seconds, if the server said."""

    status: int
    body: bytes
    retry_after: float | None = None

    def json(self) -> dict[str, Any]:
        """The body as an object; empty if it is none (a proxy's page, for example)."""
        try:
            found = json.loads(self.body)
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}


@dataclass(slots=True)
class _Loaded:
    configuration: Configuration
    pool: urllib3.PoolManager
    process: int
    at: float
    tls: ssl.SSLContext | None = field(default=None)


class Connection:
    """Safe to share between threads. Credentials are read at first use, refreshed as their kind demands, and read
    anew when the cluster refuses them."""

    def __init__(self, kubeconfig: str) -> None:
        self._kubeconfig = kubeconfig
        self._lock = threading.Lock()
        self._loaded: _Loaded | None = None

    # --- synchronous calls -----------------------------------------------------------------------------------------

    def call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: object = None,
        content_type: str = "application/json",
    ) -> Answer:
        """One call; any status is an answer. Raises `PassingError` when there is none in time."""
        where = path + (f"?{urlencode(query)}" if query else "")
        headers = {"Accept": "application/json", "User-Agent": "beamtime"}
        if body is not None:
            headers["Content-Type"] = content_type
        loaded = self._load()
        answer = self._send(loaded, method, where, body=body, headers=headers)
        if answer.status == 401 and self.reload(loaded.at):
            answer = self._send(self._load(), method, where, body=body, headers=headers)
        return answer

    def _send(self, loaded: _Loaded, method: str, where: str, *, body: object, headers: Mapping[str, str]) -> Answer:
        try:
            # The pool's own retries are off: who calls knows which deed may be repeated, and when.
            response = loaded.pool.request(
                method,
                f"{loaded.configuration.host}{where}",
                body=None if body is None else json.dumps(body),
                headers={**headers, **self.authorization()},
                timeout=urllib3.Timeout(connect=CONNECT, total=WHOLE),
                retries=False,
            )
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise PassingError(f"The cluster did not answer: {type(error).__name__}") from error
        return Answer(response.status, response.data, _seconds(response.headers.get("Retry-After")))

    # --- what the asynchronous calls need --------------------------------------------------------------------------

    @property
    def host(self) -> str:
        """`https://host:port`, without a slash at the end."""
        return str(self._load().configuration.host)

    def authorization(self) -> dict[str, str]:
        """The header with the present token; empty with client certificates. May read a file or run a helper."""
        token = self._load().configuration.get_api_key_with_prefix("BearerToken")
        return {"Authorization": token} if token else {}

    def tls(self) -> ssl.SSLContext | None:
        """Trust and client certificate for other HTTP libraries; None for a plain http address."""
        loaded = self._load()
        configuration = loaded.configuration
        if not configuration.host.startswith("https"):
            return None
        if loaded.tls is None:
            context = ssl.create_default_context(cafile=configuration.ssl_ca_cert or None)
            if not configuration.verify_ssl:
                context.check_hostname = False
                context.verify_mode = ssl.CERT_NONE
            if configuration.cert_file:
                context.load_cert_chain(configuration.cert_file, configuration.key_file)
            loaded.tls = context
        return loaded.tls

    @property
    def server_name(self) -> str | None:
        """The name to expect in the server's certificate, if it is not the host's."""
        return self._load().configuration.tls_server_name or None

    @property
    def proxy(self) -> str | None:
        configuration = self._load().configuration
        if not configuration.proxy or should_bypass_proxies(configuration.host, configuration.no_proxy or ""):
            return None
        return str(configuration.proxy)

    def reload(self, than: float | None = None) -> bool:
        """Read the credentials anew; False if that was done a moment ago. `than`: what was refused was read then."""
        with self._lock:
            if self._loaded is None:
                return True
            if than is not None and self._loaded.at > than:
                return True
            if time.monotonic() - self._loaded.at < RELOAD_AT_MOST_EVERY:
                return False
            self._loaded = None
        logger.info("the cluster refused the portal's credentials; reading them again")
        return True

    def _load(self) -> _Loaded:
        loaded = self._loaded
        # Sockets must not be shared with a parent that forked this process.
        if loaded is not None and loaded.process == os.getpid():
            return loaded
        with self._lock:
            if self._loaded is None or self._loaded.process != os.getpid():
                self._loaded = self._read()
            return self._loaded

    def _read(self) -> _Loaded:
        configuration = Configuration()
        try:
            if self._kubeconfig:
                load_kube_config(config_file=self._kubeconfig, client_configuration=configuration)  # type: ignore[no-untyped-call]
            else:
                load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
        except Exception as error:  # the loader raises whatever a malformed file leads it to
            where = self._kubeconfig or "the pod's service account"
            # Passing: an operator mends it, and no job is worth less for it.
            raise PassingError(f"The cluster's address and credentials cannot be read from {where}: {error}") from error
        configuration.connection_pool_maxsize = POOL
        pool = RESTClientObject(configuration).pool_manager
        return _Loaded(configuration, pool, os.getpid(), time.monotonic())


def _seconds(header: str | None) -> float | None:
    """Retry-After as seconds; the form with a date is not used by Kubernetes."""
    return float(header) if header and header.isascii() and header.isdigit() else None
