"""Verbs about queues: bringing rows and cluster in step, and giving teams their place in it."""

from portal.quotas.services.administer import describe, queue_changed, remove_queue
from portal.quotas.services.provision import ensure_provisioned, forget_provisioned, local_queue
from portal.quotas.services.synchronise import mirror, publish, synchronise, synchronise_own

__all__ = [
    "describe",
    "ensure_provisioned",
    "forget_provisioned",
    "local_queue",
    "mirror",
    "publish",
    "queue_changed",
    "remove_queue",
    "synchronise",
    "synchronise_own",
]
