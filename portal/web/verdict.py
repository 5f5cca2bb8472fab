"""The verdict beside the submit form: would it start now, how much is short, or can it never fit. Pure.

What is short is worked out by `quotas.policy`; here are the words for it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from portal.clusters.specs import WorkSpec
from portal.core.errors import Problem
from portal.quotas.policy import Row, nearest

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


def refused(problems: Sequence[Problem], label_of: Callable[[Problem], str]) -> Verdict:
    """For values that no job can be made of: that it can never fit, or that something is still missing.

    Fields are marked when the form is sent, not while it is typed; so the first that is wrong is named here.
    """
    never = next((p for p in problems if p.code in NEVER), None)
    if never is not None:
        return Verdict("never", _("Can never fit"), never.message)
    fields = len({p.field for p in problems})
    then = _("Then the verdict and the cost stand here.")
    wrong = next((p for p in problems if p.code != "required"), None)
    if wrong is None:
        head = ngettext("%(n)d field is not filled in yet", "%(n)d fields are not filled in yet", fields)
        return Verdict("incomplete", head % {"n": fields}, then)
    head = ngettext("%(n)d field needs a change first", "%(n)d fields need a change first", fields)
    label = label_of(wrong)
    return Verdict("incomplete", head % {"n": fields}, f"{label}: {wrong.message}" if label else wrong.message)


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
        "It asks %(asked)s %(what)s; free in ClusterQueue %(queue)s: %(free)s. It waits its turn and starts by itself."
    )
    return Verdict("no-room", head, text % words)


def what(row: Row) -> str:
    """What a row counts, in the words of a sentence."""
    if row.is_gpu:
        return row.flavor.short_label
    return _("cores") if row.resource == "cpu" else _("GiB of memory")


def plain_number(value: Decimal) -> str:
    """ "2", "0.5": at most one decimal."""
    return f"{value.quantize(Decimal('0.1')).normalize():f}"
