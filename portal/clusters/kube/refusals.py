"""What a refusal of the API server means for a job: will it pass, or never.

Statuses: https://github.com/kubernetes/community/blob/master/contributors/devel/sig-architecture/api-conventions.md
(HTTP status codes; Status kind).
"""

from portal.clusters.kube.connection import Answer
from portal.clusters.kube.values import items, mapping, number, text
from portal.clusters.specs import ClusterError, PassingError, PermanentError

_PASSING = frozenset({401, 408, 425, 429})


def refusal(answer: Answer, deed: str, *, secretive: bool = False) -> ClusterError:
    """The error for an answer that is not a success. `deed` begins the sentence for people, as in "create the Job".

    `secretive` keeps the server's own words out of it, because they may quote what it was given.

    Beside 408, 429 and 5xx these pass too, because it is for the operator or for time to mend them and the job is as
    good as before: credentials or rights that the portal lacks, a team's count of Jobs that is used up, a namespace
    that is being deleted, and a write that met another (409 Conflict).
    """
    status = answer.json()
    reason, message = text(status.get("reason")), text(status.get("message"))
    if not message and not status:
        message = answer.body[:200].decode(errors="replace").strip()
    shown = (reason if secretive else message) or f"HTTP status {answer.status}"
    said = f"The cluster would not {deed}: {shown}"
    passing = (
        answer.status in _PASSING
        or answer.status >= 500
        or (answer.status == 409 and reason != "AlreadyExists")
        or (answer.status == 403 and _passes(message, status))
    )
    if passing:
        wait = answer.retry_after
        told = number(mapping(status.get("details")).get("retryAfterSeconds"))
        return PassingError(said, retry_after=wait if wait is not None else (float(told) if told else None))
    return PermanentError(reason or str(answer.status), said)


def _passes(message: str, status: dict[str, object]) -> bool:
    causes = {cause.get("reason") for cause in items(mapping(status.get("details")).get("causes"))}
    # The words of the quota admission plug-in and of the RBAC authoriser; neither has a reason of its own.
    return "NamespaceTerminating" in causes or "exceeded quota" in message or " cannot " in message
