"""Who is who among the processes of this machine.

A process is told by its id *and* its start, because ids are used again. A pod's processes are those of the command's
process group and every other one that carries the pod's mark in its environment, which finds those that left the group.
On Linux the runner also adopts whatever its command leaves behind, and so finds those that shed the mark as well.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Callable

# The environment variable by which a pod's processes are known; its value is the pod's uid.
MARK = "BEAMTIME_POD_UID"
_PROC = sys.platform.startswith("linux")
_PAGE = os.sysconf("SC_PAGE_SIZE")
# Fields of /proc/<pid>/stat counted from behind the command's closing bracket (proc(5) counts from 1, the state is 3).
_STATE, _PARENT, _GROUP, _STARTED, _RESIDENT = 0, 1, 2, 19, 21
_PR_SET_CHILD_SUBREAPER = 36  # prctl(2)


def started(pid: int) -> str:
    """A text that no other process of this id ever has; "" if there is no such process or it is a zombie."""
    if _PROC:
        fields = _stat(pid)
        return "" if not fields or fields[_STATE] in (b"Z", b"X") else f"{_boot()}/{fields[_STARTED].decode()}"
    return _ps_table().get(pid, (0, 0, ""))[2]


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends, instead of init. Linux only; elsewhere nothing."""
    if _PROC:
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def bury_orphans(leader: int) -> None:
    """Reap the adopted that have ended, so that they do not stay as zombies; never the leader."""
    while hasattr(os, "waitid"):
        try:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        if ended is None or ended.si_pid == leader:
            return
        os.waitpid(ended.si_pid, 0)


def members(group: int, uid: str, *, root: int = 0) -> list[int]:
    """Process ids of a pod, this process left out; zombies do not count. `group` 0: by the mark alone. With `root`,
    the descendants of that process too."""
    if not _PROC:
        return [pid for pid, row in _ps_table().items() if group and row[0] == group]
    mark = f"\0{MARK}={uid}\0".encode()
    found = []
    table = {pid: fields for pid in _pids() if (fields := _stat(pid))}
    for pid, fields in table.items():
        if fields[_STATE] in (b"Z", b"X") or pid == os.getpid():
            continue
        known = (group and int(fields[_GROUP]) == group) or (root and _descends(pid, root, table))
        if known or mark in b"\0" + _read(f"/proc/{pid}/environ"):
            found.append(pid)
    return found


def memory_of(group: int) -> int:
    """Bytes that the processes of a group hold in memory; what they share counts once per process."""
    if not _PROC:
        return sum(row[1] for row in _ps_table().values() if row[0] == group)
    rows = (_stat(pid) for pid in _pids())
    return sum(int(row[_RESIDENT]) * _PAGE for row in rows if row and int(row[_GROUP]) == group)


def fair_memory_of(group: int) -> int:
    """Like `memory_of`, but shared pages are split among those who share them (PSS); slower."""
    if not _PROC:
        return memory_of(group)
    total = 0
    for pid in _pids():
        row = _stat(pid)
        if not row or int(row[_GROUP]) != group:
            continue
        lines = _read(f"/proc/{pid}/smaps_rollup").splitlines()
        share = next((int(line.split()[1]) * 1024 for line in lines if line.startswith(b"Pss:")), None)
        total += int(row[_RESIDENT]) * _PAGE if share is None else share
    return total


def send(pid: int, mark: str, number: int) -> bool:
    """Signal the process that `started` once named `mark`; False if it is gone. Never reaches a reused id."""
    if not hasattr(signal, "pidfd_send_signal"):
        if started(pid) != mark:
            return False
        return _try(lambda: os.kill(pid, number))
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        # The handle keeps meaning the same process, so what is checked now is what gets the signal.
        return started(pid) == mark and _try(lambda: signal.pidfd_send_signal(handle, number))
    finally:
        os.close(handle)


def end_all(group: int, uid: str, *, root: int = 0) -> None:
    """SIGKILL for every process of a pod, those too that left its process group; see `members`."""
    for _ in range(5):  # a process that forks while it is being looked for is found in the next round
        pids = members(group, uid, root=root)
        if not pids:
            return
        for pid in pids:
            mark = started(pid)
            if mark:
                send(pid, mark, signal.SIGKILL)


def _try(call: Callable[[], None]) -> bool:
    try:
        call()
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _descends(pid: int, root: int, table: dict[int, list[bytes]]) -> bool:
    seen: set[int] = set()  # the table is no snapshot, so that it may hold a circle
    while pid in table and pid not in seen:
        seen.add(pid)
        pid = int(table[pid][_PARENT])
        if pid == root:
            return True
    return False


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:  # gone meanwhile, or another user's
        return b""


def _stat(pid: int) -> list[bytes]:
    return _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()


def _boot() -> str:
    return _read("/proc/sys/kernel/random/boot_id")[:8].decode()


def _ps_table() -> dict[int, tuple[int, int, str]]:
    """pid -> (process group, resident bytes, start), without zombies, where there is no /proc (macOS, BSD)."""
    table = {}
    with os.popen("ps -A -o pid=,pgid=,rss=,state=,lstart=") as lines:  # noqa: S605 - a fixed text
        for line in lines:
            pid, group, kilobytes, state, *start = line.split()
            if not state.startswith("Z"):
                table[int(pid)] = (int(group), int(kilobytes) * 1024, " ".join(start))
    return table
