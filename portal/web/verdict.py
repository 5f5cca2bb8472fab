"""The verdict beside the submit form: would it start now, how much is short, or can it never fit. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from portal.clusters.specs import WorkSpec
from portal.core.errors import Problem
from portal.web.capacity import Row, gpu_words

_MIB_PER_GIB, _MILLICORES = 1024, 1000
# What jobs.services.preview says when a queue could never give what is asked.
NEVER = frozenset({"never_fits"})


@dataclass(frozen=True, slots=True)
class Verdict:
    """`kind` is one of the design's verdicts (web/looks.py)."""

    kind: str
    head: str
    text: str = ""

    @property
    def colour(self) -> str:
        """The class of its words where there is no box around them."""
        return {"now": "bt-is-good", "never": "bt-is-bad", "unknown": "bt-2", "incomplete": "bt-2"}.get(
            self.kind, "bt-is-warning"
        )


def refused(problems: Sequence[Problem]) -> Verdict:
    """For values that no job can be made of: that it can never fit, or that something is still missing."""
    never = next((p for p in problems if p.code in NEVER), None)
    if never is not None:
        return Verdict("never", _("Can never fit"), never.message)
    fields = len({p.field for p in problems})
    if all(p.code == "required" for p in problems):
        head = ngettext("%(n)d field is not filled in yet", "%(n)d fields are not filled in yet", fields)
    else:
        head = ngettext("%(n)d field needs a change first", "%(n)d fields need a change first", fields)
    return Verdict("incomplete", head % {"n": fields}, _("Then the verdict and the cost stand here."))


def of_work(work: WorkSpec, queue: str, rows: Sequence[Row], waiting_jobs: int) -> Verdict:
    """For work that its queue can give one day. `rows` are the numbers of that queue now."""
    shortage = nearest(work, rows)
    if shortage is None:
        text = _("ClusterQueue %(queue)s has no numbers yet.") % {"queue": queue}
        return Verdict("unknown", _("No word on what is free"), text)
    if not shortage:
        if waiting_jobs:
            head = ngettext("%(n)d job ahead", "%(n)d jobs ahead", waiting_jobs) % {"n": waiting_jobs}
            text = _("There is room for it in ClusterQueue %(queue)s now, and other jobs wait for it too.")
            return Verdict("ahead", head, text % {"queue": queue})
        text = _("What it asks is free in ClusterQueue %(queue)s.") % {"queue": queue}
        return Verdict("now", _("Would start now"), text)
    row, asked = shortage[0]
    short = plain_number(asked - row.free)
    head = _("No room now: %(n)s %(what)s short") % {"n": short, "what": what(row)}
    words = {"asked": plain_number(asked), "what": what(row), "free": plain_number(row.free), "queue": queue}
    text = _(
        "It asks %(asked)s %(what)s and %(free)s are free in ClusterQueue %(queue)s. "
        "It waits its turn and starts by itself."
    )
    return Verdict("no-room", head, text % words)


def nearest(work: WorkSpec, rows: Sequence[Row]) -> list[tuple[Row, Decimal]] | None:
    """What is short, as (row, asked), GPUs first, in the flavor that comes nearest to having room for the work.

    Empty: there is room. None: the queue has no numbers for it.
    """
    shapes = _flavors(rows, work.flavor, gpu=work.gpus > 0)
    return min((_short(group, asks_of(work)) for group in shapes), key=len) if shapes else None


def asks_of(work: WorkSpec) -> dict[str, Decimal]:
    """What all pods that run at once ask, by resource; GPUs under ""."""
    pods = min(work.runs, work.parallelism or work.runs)
    return {
        "": Decimal(work.gpus * pods),
        "cpu": Decimal(work.cpu_millicores * pods) / _MILLICORES,
        "memory": Decimal(work.memory_mib * pods) / _MIB_PER_GIB,
    }


def _flavors(rows: Sequence[Row], wanted: str, *, gpu: bool) -> list[list[Row]]:
    """The queue's rows put together by flavor, of the flavors that could take the work."""
    found: dict[int, list[Row]] = {}
    for row in rows:
        if not wanted or row.flavor.name == wanted:
            found.setdefault(row.flavor.pk, []).append(row)
    return [group for group in found.values() if not gpu or any(row.is_gpu for row in group)]


def _short(rows: Sequence[Row], asks: dict[str, Decimal]) -> list[tuple[Row, Decimal]]:
    """What is short in one flavor, GPUs first."""
    pairs = [(row, asks["" if row.is_gpu else row.resource]) for row in rows if row.is_gpu or row.resource in asks]
    return [(row, asked) for row, asked in sorted(pairs, key=lambda p: not p[0].is_gpu) if asked > row.free]


def what(row: Row) -> str:
    """What a row counts, in the words of a sentence."""
    if row.is_gpu:
        return gpu_words(row.flavor)
    return _("cores") if row.resource == "cpu" else _("GiB of memory")


def plain_number(value: Decimal) -> str:
    """ "2", "0.5": at most one decimal."""
    return f"{value.quantize(Decimal('0.1')).normalize():f}"
