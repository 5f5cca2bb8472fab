"""Names and label values that Kubernetes accepts, valid by construction.

Label values: at most 63 characters of [A-Za-z0-9._-], alphanumeric at both ends
(https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#syntax-and-character-set).
"""

import hashlib
import re

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_EDGE = "._-"
_READABLE = 40


def label_value(text: str) -> str:
    """A valid label value that tells any two different texts apart.

    The readable part is only for people; the digest behind it carries the identity, so "faculty.a" and "faculty-a"
    never meet. Deterministic; never empty; at most 63 characters.
    """
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    readable = _UNSAFE.sub("-", text)[:_READABLE].strip(_EDGE)
    return f"{readable}.{digest}" if readable else digest
