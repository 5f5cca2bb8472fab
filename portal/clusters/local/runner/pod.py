"""Runs one pod: start the command, keep its log, enforce its limits, note how it ended."""

import os
import select
import signal
import time

from portal.clusters.local.runner import files, processes
from portal.clusters.local.runner.crilog import LogWriter

GRACE = 5.0  # seconds between SIGTERM and SIGKILL
MEMORY_PERIOD = 1.0  # seconds between looks at the memory in use
MEMORY_PERIOD_NEAR = 0.1  # the same once half of the limit is in use
DRAIN = 1.0  # seconds that what is left in the pipe may take once every process is gone
DEADLINE = ("DeadlineExceeded", "Pod was active on the node longer than the specified deadline")


def main(folder: str) -> int:
    """Run the pod of this folder, unless another runner has it or it has run already."""
    os.umask(0o077)
    lock = files.take_lock(f"{folder}/{files.LOCK}", patience=1.0)
    if lock is None or os.path.exists(f"{folder}/{files.STATUS}"):
        return 0
    PodRun(folder).run()
    return 0


class PodRun:
    """One life of one container, from the start of its command to the end of its last process."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        spec = files.read_json(f"{folder}/{files.POD}")
        if spec is None:
            raise SystemExit(f"{folder}/{files.POD} cannot be read")
        self._spec = spec
        self._uid = str(spec["uid"])
        self._status: dict[str, object] = {
            "runner": [os.getpid(), processes.started(os.getpid())],
            "leader": None,
            "phase": "Pending",
            "reason": "",
            "message": "",
            "container": {"state": "waiting", "reason": "ContainerCreating"},
        }
        self._leader = 0
        self._started_at = 0
        # Why the command is being ended: reason and message of the pod.
        self._why: tuple[str, str] | None = None
        self._out_of_memory = ""
        self._kill_at: float | None = None
        self._asked_to_stop = False

    def run(self) -> None:
        """From beginning to end; the last thing it writes is the final status."""
        wake = self._listen()
        stop = self._stop_file()
        if stop is not None:
            reason, message, _grace = stop
            self._finish("Failed", reason, message, {"state": "terminated", "reason": "NotStarted"})
            return
        log = LogWriter(f"{self._folder}/{files.LOG}")
        output, problem = self._start()
        if problem:
            log.close()
            moment = int(time.time())
            ends = {"exit_code": 128, "started_at": moment, "finished_at": moment}
            self._finish("Failed", "", "", {"state": "terminated", "reason": "StartError", "message": problem, **ends})
            return
        self._report("Running", {"state": "running", "started_at": self._started_at})
        try:
            self._attend(output, wake, log)
        finally:
            processes.end_all(self._leader, self._uid, root=os.getpid())
        self._drain(output, log)
        log.close()
        self._conclude(os.waitstatus_to_exitcode(os.waitpid(self._leader, 0)[1]))

    # --- start ---------------------------------------------------------------------------------------------------

    def _listen(self) -> int:
        """Be woken by SIGTERM (stop) and SIGCHLD (the command may have ended); returns what to select on."""
        reader, writer = os.pipe()
        os.set_blocking(reader, False)
        os.set_blocking(writer, False)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, self._note_stop)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        return reader

    def _note_stop(self, _number: int, _frame: object) -> None:
        self._asked_to_stop = True

    def _stop_file(self) -> "tuple[str, str, float] | None":
        stop = files.read_json(f"{self._folder}/{files.STOP}")
        if stop is None:
            return None
        return str(stop.get("reason", "")), str(stop.get("message", "")), float(str(stop.get("grace", GRACE)))

    def _environment(self) -> dict[bytes, bytes]:
        """Base, then the job's own variables, then its secrets, then what the backend decides; byte for byte."""
        spec = self._spec
        pairs: list[tuple[str, str]] = [*_pairs(spec["base"]), *_pairs(spec["env"])]
        if spec["secrets"]:
            pairs += _pairs(files.read_json(str(spec["secrets"])) or {})
        pairs += [*_pairs(spec["forced"]), (processes.MARK, self._uid)]
        return {_bytes(name): _bytes(value) for name, value in pairs}

    def _start(self) -> tuple[int, str]:
        """Start the command in a session of its own; (where its output comes, "") or (-1, why it did not start)."""
        argv = [_bytes(str(word)) for word in _list(self._spec["argv"])]
        environment = self._environment()
        program = _find(argv[0], environment.get(b"PATH", b""))
        if not program:
            return -1, f'exec: "{argv[0].decode(errors="replace")}": executable file not found in $PATH'
        processes.adopt_orphans()
        work = f"{self._folder}/{files.WORK}"
        os.makedirs(work, exist_ok=True)
        output, command_end = os.pipe()
        failure, failure_end = os.pipe()
        child = os.fork()
        if child == 0:
            _become(program, argv, environment, work=work, output=command_end, failure=failure_end)
        os.close(command_end)
        os.close(failure_end)
        with os.fdopen(failure, "rb") as pipe:
            problem = pipe.read().decode(errors="replace")
        if problem:
            os.waitpid(child, 0)
            os.close(output)
            return -1, f'exec: "{argv[0].decode(errors="replace")}": {problem}'
        self._leader = child
        self._started_at = int(time.time())
        os.set_blocking(output, False)
        return output, ""

    # --- while it runs -------------------------------------------------------------------------------------------

    def _attend(self, output: int, wake: int, log: LogWriter) -> None:
        """Until the command's first process has ended. It is not reaped here, so its id stays its own."""
        limit, most = self._spec["time_limit"], self._spec["memory"]
        deadline = time.monotonic() + float(str(limit)) if limit else None
        look_at_memory = time.monotonic() + MEMORY_PERIOD_NEAR if most else None
        listen = [output, wake]
        while not self._has_ended():
            due = [moment for moment in (deadline, look_at_memory, self._kill_at) if moment is not None]
            wait = min(due, default=time.monotonic() + 60) - time.monotonic()
            wait = min(wait, 60 if log.due_in is None else log.due_in)
            ready, _, _ = select.select(listen, [], [], max(0.0, wait))
            if wake in ready:
                os.read(wake, 4096)
                processes.bury_orphans(self._leader)
            if output in ready and not _read_into(log, output):
                listen.remove(output)  # the command closed its output; it may run on in silence
            if log.due_in == 0:
                log.flush()
            now = time.monotonic()
            if self._asked_to_stop:
                self._asked_to_stop = False
                self._terminate(*(self._stop_file() or ("", "", GRACE)))
            if deadline is not None and now >= deadline:
                deadline = None
                self._terminate(*DEADLINE, GRACE)
            if look_at_memory is not None and now >= look_at_memory:
                look_at_memory = time.monotonic() + self._check_memory(int(str(most)))
            if self._kill_at is not None and now >= self._kill_at:
                self._kill_at = None
                processes.end_all(self._leader, self._uid, root=os.getpid())

    def _has_ended(self) -> bool:
        if hasattr(os, "waitid"):
            return os.waitid(os.P_PID, self._leader, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        return not processes.started(self._leader)

    def _terminate(self, reason: str, message: str, grace: float) -> None:
        """SIGTERM to the whole group, SIGKILL `grace` seconds later. The first reason given stands."""
        kill_at = time.monotonic() + grace
        self._kill_at = kill_at if self._kill_at is None else min(kill_at, self._kill_at)
        if self._why is not None:
            return
        self._why = (reason, message)
        for number in (signal.SIGTERM, signal.SIGCONT):  # a stopped process hears SIGTERM only once it goes on
            try:
                os.killpg(self._leader, number)
            except (ProcessLookupError, PermissionError):
                return

    def _check_memory(self, most: int) -> float:
        """End the pod where it holds more than `most` bytes; seconds until the next look."""
        used = processes.memory_of(self._leader)
        if used > most:
            used = processes.fair_memory_of(self._leader)
        if used > most and not self._out_of_memory:
            self._out_of_memory = f"The memory limit of {most >> 20} MiB was reached: {used >> 20} MiB were in use."
            processes.end_all(self._leader, self._uid, root=os.getpid())
        return MEMORY_PERIOD_NEAR if used * 2 > most else MEMORY_PERIOD

    def _drain(self, output: int, log: LogWriter) -> None:
        """What the ended processes had still put into the pipe."""
        until = time.monotonic() + DRAIN
        while time.monotonic() < until:
            ready, _, _ = select.select([output], [], [], 0)
            if not ready or not _read_into(log, output):
                return

    # --- end -----------------------------------------------------------------------------------------------------

    def _conclude(self, code: int) -> None:
        """`code` below 0: ended by that signal. Exit codes are told as shells and container runtimes tell them."""
        container: dict[str, object] = {
            "state": "terminated",
            "reason": "Completed" if code == 0 else "Error",
            "exit_code": code if code >= 0 else 128 - code,
            "signal": -code if code < 0 else None,
            "started_at": self._started_at,
            # A clock that was set back must not make a run of negative length.
            "finished_at": max(int(time.time()), self._started_at),
        }
        reason, message = self._why or ("", "")
        if self._out_of_memory:
            container.update(reason="OOMKilled", message=self._out_of_memory)
            reason = message = ""
        failed = code != 0 or bool(reason) or bool(self._out_of_memory)
        self._finish("Failed" if failed else "Succeeded", reason, message, container)

    def _finish(self, phase: str, reason: str, message: str, container: dict[str, object]) -> None:
        self._status.update(reason=reason, message=message)
        self._report(phase, container)

    def _report(self, phase: str, container: dict[str, object]) -> None:
        leader = [self._leader, processes.started(self._leader)] if phase == "Running" else self._status["leader"]
        self._status.update(phase=phase, container=container, leader=leader)
        files.write_json(f"{self._folder}/{files.STATUS}", self._status)
        files.ring(str(self._spec["bell"]))


def _become(
    program: bytes, argv: list[bytes], environment: dict[bytes, bytes], *, work: str, output: int, failure: int
) -> None:
    """In the forked child: turn into the command, or say why not and vanish."""
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDONLY)
        for source, target in ((nothing, 0), (output, 1), (output, 2)):
            os.dup2(source, target)
        # Python ignores these two, and what is ignored stays so in the command.
        for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        os.chdir(work)
        os.execve(program, argv, environment)  # noqa: S606 - running what a person asked for is the purpose
    except (OSError, ValueError) as error:
        os.write(failure, (getattr(error, "strerror", "") or str(error)).encode())
    finally:
        os._exit(127)


def _find(program: bytes, path: bytes) -> bytes:
    """Where the command lies, looked for as `execvp` does; empty if nowhere."""
    if b"/" in program:
        return program
    for folder in path.split(b":"):
        found = os.path.join(folder or b".", program)
        if os.path.isfile(found) and os.access(found, os.X_OK):
            return found
    return b""


def _read_into(log: LogWriter, output: int) -> bool:
    """One read from the command's output; False at its end."""
    try:
        data = os.read(output, 65536)
    except BlockingIOError:
        return True
    log.feed(data)
    return bool(data)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _pairs(value: object) -> list[tuple[str, str]]:
    """(name, value) pairs from a JSON object or a list of two-element lists."""
    if isinstance(value, dict):
        return [(str(name), str(text)) for name, text in value.items()]
    rows = [_list(row) for row in _list(value)]
    return [(str(row[0]), str(row[1])) for row in rows]
