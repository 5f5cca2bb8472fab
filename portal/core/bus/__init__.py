"""Announcing that something changed. The bus hurries readers up; it never carries the only copy of anything.

`announce` is called by verbs, inside their transaction; `hub` is used by the `live` door. Topics are texts such as
`job:<uuid>`, `stream:<uuid>`, `team:<id>` and `user:<id>`.
"""

from portal.core.bus.announce import announce
from portal.core.bus.fanout import Hub, Message, Subscription
from portal.core.bus.process import hub

__all__ = ["Hub", "Message", "Subscription", "announce", "hub"]
