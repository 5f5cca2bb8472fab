"""What `submit` and `preview` share: from a request to everything that will be stored, or every problem at once."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from django.utils.crypto import salted_hmac

from portal.catalog import policy as catalog
from portal.catalog import selectors as versions
from portal.catalog.models import TemplateVersion
from portal.catalog.specs import Definition, Filled
from portal.clusters.specs import WorkSpec
from portal.core.clock import now
from portal.core.errors import Forbidden, Problem, Refused
from portal.funds import selectors as funds
from portal.funds.specs import Estimate
from portal.jobs.policy.choice import choose_queue, fit_problems, flavor_of, offer_of
from portal.jobs.policy.names import LONGEST, name_problems
from portal.jobs.specs import JobRequest
from portal.quotas.models import ClusterQueue
from portal.quotas.policy import QueueBook
from portal.quotas.selectors import book_of
from portal.quotas.specs import FlavorRow
from portal.teams.policy import Action
from portal.teams.selectors import allowed

LONGEST_KEY = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A request that nothing speaks against. `flavor` None: no GPUs, or Kueue picks among several flavors."""

    version: TemplateVersion
    filled: Filled
    work: WorkSpec
    queue: ClusterQueue
    flavor: FlavorRow | None
    gpu_resource: str
    name: str
    estimate: Estimate

    @property
    def node_selector(self) -> dict[str, str]:
        """Only for a flavor that the person chose; else Kueue stays free."""
        return dict(self.flavor.node_labels) if self.flavor is not None and self.work.flavor else {}

    @property
    def gpu_model(self) -> str:
        return self.flavor.gpu_model if self.flavor is not None else ""


def demand_right(request: JobRequest) -> None:
    """Raises `Forbidden` unless the person may submit for the team."""
    if not allowed(request.user, request.team, Action.SUBMIT_JOB):
        raise Forbidden(f"Only members of {request.team.name} submit jobs for it.")


def draft(request: JobRequest) -> Draft:
    """Everything checked and worked out, without writing. Raises `Refused` with every problem that can be found."""
    problems = _closed(request) + name_problems(request.name) + _key_problems(request.idempotency_key)
    version, definition = _version(request, problems)
    book = book_of(request.team)
    queue = choose_queue(book, definition, request.values, request.queue or "") if definition is not None else None
    if isinstance(queue, Problem):
        problems.append(queue)
    if version is None or definition is None or queue is None or isinstance(queue, Problem):
        raise Refused(problems)
    filled = _filled(definition, request, book, queue, problems)
    if filled is None:
        raise Refused(problems)
    work = catalog.render(definition, filled)
    problems += fit_problems(book, queue, definition, work)
    if problems:
        raise Refused(problems)
    flavor = flavor_of(book, queue, work)
    rows = book.gpu_flavors(queue)
    return Draft(
        version=version,
        filled=filled,
        work=work,
        queue=queue,
        flavor=flavor,
        gpu_resource=flavor.gpu_resource if flavor else (rows[0].gpu_resource if rows else "nvidia.com/gpu"),
        name=request.name.strip() or version.template.title[:LONGEST],
        estimate=_estimate(work, [flavor] if flavor else rows),
    )


def digest_of(request: JobRequest) -> str:
    """A keyed digest of all that makes a request this one; from a bare one a short secret could be guessed."""
    parts = [
        request.team.pk,
        request.template,
        request.version,
        request.values,
        request.name,
        request.queue or "",
        str(request.rerun_of or ""),
    ]
    body = json.dumps(parts, sort_keys=True, default=str)
    return salted_hmac("portal.jobs.request", body, algorithm="sha256").hexdigest()


def _closed(request: JobRequest) -> list[Problem]:
    if request.team.closed_at is None:
        return []
    return [Problem("team", f"The team {request.team.name} is closed and takes no new jobs.", "closed")]


def _key_problems(key: str | None) -> list[Problem]:
    if not key or (len(key) <= LONGEST_KEY and key.isprintable()):
        return []
    message = f"An idempotency key has 1 to {LONGEST_KEY} printable characters."
    return [Problem("idempotency_key", message)]


def _version(request: JobRequest, problems: list[Problem]) -> tuple[TemplateVersion | None, Definition | None]:
    try:
        version = versions.version_for(request.template, request.version)
    except Refused as refused:
        problems += refused.problems
        return None, None
    return version, versions.definition_of(version)


def _filled(
    definition: Definition, request: JobRequest, book: QueueBook, queue: ClusterQueue, problems: list[Problem]
) -> Filled | None:
    try:
        return catalog.clean(definition, request.values, offer_of(book, [queue]))
    except Refused as refused:
        problems += refused.problems
        return None


def _estimate(work: WorkSpec, flavors: Iterable[FlavorRow]) -> Estimate:
    return funds.estimate_for(
        gpus=work.gpus,
        gpu_models=[flavor.gpu_model for flavor in flavors],
        cores=Decimal(work.cpu_millicores) / 1000,
        gib=Decimal(work.memory_mib) / 1024,
        runs=work.runs,
        seconds=work.time_limit_seconds,
        at=now(),
    )
