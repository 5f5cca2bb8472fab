"""Why an attempt waits, hangs or ended: the codes, and the sentences with what to do next.

The sentences name the thing, the number and the remedy. The cluster's own words stand beside them, never inside.
"""

import signal
from enum import StrEnum

from portal.catalog.policy.units import format_duration, format_memory


class Reason(StrEnum):
    """Stable codes; programs may rely on them."""

    # waiting
    WAITING = "waiting"
    QUOTA = "quota"
    NEVER_FITS = "never_fits"
    QUEUE_CLOSED = "queue_closed"
    MISCONFIGURED = "misconfigured"
    HELD = "held"
    PREEMPTED = "preempted"
    EVICTED = "evicted"
    # on the way
    CHECKING = "checking"
    NO_WORD = "no_word"
    UNSCHEDULABLE = "unschedulable"
    IMAGE = "image"
    CONTAINER = "container"
    # ends
    OUT_OF_MEMORY = "out_of_memory"
    EXIT_CODE = "exit_code"
    SIGNAL = "signal"
    CANNOT_START = "cannot_start"
    NODE_REFUSED = "node_refused"
    TIME_LIMIT = "time_limit"
    NODE_LOST = "node_lost"
    DEACTIVATED = "deactivated"
    STOPPED = "stopped"
    VANISHED = "vanished"
    FAILED = "failed"
    DELETED_OUTSIDE = "deleted_outside"
    CANCELLED = "cancelled"
    REFUSED = "refused"
    NAME_TAKEN = "name_taken"


# Codes that say no more than that something went wrong; a later fact may put a better one in their place.
VAGUE = frozenset({"", Reason.FAILED, Reason.VANISHED, Reason.STOPPED})


def out_of_memory(limit_mib: int) -> str:
    limit = f" of {format_memory(limit_mib)}" if limit_mib else ""
    return f"Killed: the container passed its memory limit{limit}. Ask for more memory, or hold less at once."


def exit_code(code: int) -> str:
    return f"Ended with exit code {code}. The end of its log usually says why."


def killed_by(number: int) -> str:
    return f"Killed by signal {number}{_signal_name(number)}. The end of its log may say why."


def stopped() -> str:
    return "Stopped from outside: its pod was deleted while it ran."


def _signal_name(number: int) -> str:
    try:
        return f" ({signal.Signals(number).name})"
    except ValueError:
        return ""


def time_limit(seconds: int | None) -> str:
    limit = f" of {format_duration(seconds)}" if seconds else ""
    return f"Stopped at its time limit{limit}. Give it more time, or go on from its last checkpoint."


def image() -> str:
    return "The image cannot be pulled. Check its name and tag; the cluster keeps trying."


def container_config() -> str:
    return "The container cannot be set up. Tell an administrator; the cluster keeps trying."


def cannot_start() -> str:
    return "The program could not be started. Check that the image has the command, and that it may be executed."


def node_refused(node: str) -> str:
    return f"{_node(node, capital=True)} refused the pod. Run it again; if it happens again, tell an administrator."


def node_lost(node: str) -> str:
    return f"{_node(node, capital=True)} left the cluster while the job was on it. Run it again."


def node_shut_down(node: str) -> str:
    return f"{_node(node, capital=True)} was shut down while the job was on it. Run it again."


def node_silent(node: str) -> str:
    return f"No word from {_node(node)}. Checking; the job may still be running there."


def evicted_by_node(node: str) -> str:
    return f"{_node(node, capital=True)} evicted the pod. Run it again, and ask for the memory that it really uses."


def vanished() -> str:
    return "Its pod vanished before its end was read, so how it ended is not known. Run it again."


def status_unknown() -> str:
    return "The node could not say how the container ended. Run it again."


def failed() -> str:
    return "The cluster says that it failed, and gives no more than the words below."


def deleted_outside() -> str:
    return "Its Job was deleted in the cluster, not through Beamtime, so how it ended is not known. Run it again."


def deactivated() -> str:
    return "Given up for good: it will not be tried again. Change what the words below say, then run it again."


def held() -> str:
    return "Held: an administrator has deactivated its Workload. It goes on once that is undone."


def cancelled(by: str) -> str:
    return f"Cancelled by {by}." if by else "Cancelled."


def unschedulable() -> str:
    return "Its quota is reserved, but no node has room for the pod yet. The cluster keeps trying."


def in_array(sentence: str, *, index: int, failures: int, runs: int) -> str:
    """The sentence about one run of an array, led by which run and how many."""
    if runs <= 1:
        return sentence
    count = "1 run" if failures == 1 else f"{failures} runs"
    return f"{count} of {runs} failed. Run {index}: {sentence}"


def refused() -> str:
    return "The cluster refused to make the job. Change what the words below say, then run it again."


def name_taken(name: str) -> str:
    return f"The cluster has an object {name} that is not of this job. Tell an administrator, then run it again."


def checking() -> str:
    return "Sent to the cluster, but no answer came back: unknown whether it arrived. Checking."


def checking_end() -> str:
    return "Asked to end, but the cluster does not answer. It is asked again until it confirms the end."


def no_word(since: str) -> str:
    return f"No word from the cluster since {since}. It is asked again until it answers; nothing is lost."


def no_place() -> str:
    return "The team's namespace could not be made in the cluster. Trying again; tell an administrator if this stays."


def _node(name: str, *, capital: bool = False) -> str:
    return f"{'Node' if capital else 'node'} {name}" if name else f"{'The' if capital else 'its'} node"
