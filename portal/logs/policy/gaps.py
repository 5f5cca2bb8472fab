"""What is said of lines that are missing."""

from portal.logs.models import Cause, Gap

_BECAUSE = {
    Cause.ROTATED: "the log was rotated while nobody was reading",
    Cause.SKIPPED: "the cluster's log endpoint left them out when the log was rotated",
}


def gap_words(gap: Gap) -> str:
    """One sentence: which lines are missing and why. Times stand beside it, in the reader's zone."""
    if gap.cause == Cause.DELETED:
        return "The last lines may be missing: the pod was deleted before its log was read to the end."
    if gap.cause == Cause.FULL:
        kept = f"Nothing after line {gap.before_line - 1:,} is kept: the job has stored as much log as a job may."
        return f"{kept} {gap.lines:,} more lines, {gap.bytes or 0:,} bytes, were left out." if gap.lines else kept
    what = "Lines may be" if gap.lines is None else f"{gap.lines:,} line{'s are' if gap.lines != 1 else ' is'}"
    return f"{what} missing before line {gap.before_line:,}: {_BECAUSE[Cause(gap.cause)]}."
