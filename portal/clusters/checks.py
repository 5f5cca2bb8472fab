"""System checks about running jobs on the portal's own machine."""

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, register

from portal.clusters.models import BackendKind
from portal.clusters.policy import backend_for
from portal.clusters.services import SERVICE_ACCOUNT

TAG = "beamtime"
LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]", "::1"})


@register(TAG)
def local_backend_is_allowed(app_configs: Sequence[Any] | None, **kwargs: Any) -> list[CheckMessage]:
    """The `local` backend runs commands as the portal's own user: only where that was wanted."""
    kind = backend_for(
        settings.BEAMTIME_CLUSTER_BACKEND,
        kubeconfig=settings.BEAMTIME_CLUSTER_KUBECONFIG,
        service_account=SERVICE_ACCOUNT.exists(),
    )
    if kind != BackendKind.LOCAL or settings.BEAMTIME_ALLOW_LOCAL_BACKEND:
        return []
    return [
        Error(
            "No cluster is configured, so jobs would run as processes of the portal's own user.",
            hint="Set BEAMTIME_CLUSTER_KUBECONFIG, or BEAMTIME_ALLOW_LOCAL_BACKEND=yes if that is wanted.",
            id="beamtime.E001",
        )
    ]


@register(TAG)
def embedded_mode_stays_on_this_machine(app_configs: Sequence[Any] | None, **kwargs: Any) -> list[CheckMessage]:
    """The embedded mode runs jobs without asking, so it answers to nobody but this machine."""
    if not settings.BEAMTIME_LOOPBACK_ONLY:
        return []
    strangers = [host for host in settings.ALLOWED_HOSTS if host not in LOOPBACK]
    if not strangers:
        return []
    return [
        Error(
            f"The embedded mode answers on this machine only, but BEAMTIME_ALLOWED_HOSTS names {strangers[0]}.",
            hint="Remove it, or set BEAMTIME_ALLOW_LOCAL_BACKEND=yes to let everybody who can reach the address and "
            "sign in run commands as your user.",
            id="beamtime.E002",
        )
    ]
