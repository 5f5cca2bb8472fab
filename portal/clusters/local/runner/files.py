"""The files by which controller and runner of a pod speak to each other. Every write is whole or not there."""

import errno
import fcntl
import json
import os
import time

# Names inside a pod's folder.
POD = "pod.json"  # what to run; written by the controller before the runner starts, never changed
STATUS = "status.json"  # what became of it; written by the runner, or by the controller where a runner vanished
STOP = "stop.json"  # {"reason", "message", "grace"}: why a SIGTERM to the runner was sent
LOG = "log"  # `<RFC 3339 nanoseconds> stdout F|P <text>\n` per record, as container runtimes write it
LOCK = "lock"  # held (flock) by the runner for as long as it lives
WORK = "work"  # the command's HOME and working folder
ERRORS = "runner.err"


def write_json(path: str, data: object) -> None:
    """Replace the file by `data`, readable by this user only; a reader sees the old or the new one, never half."""
    folder, _, name = path.rpartition("/")
    # Begins with a dot, so that no listing takes it for the real thing.
    draft = f"{folder}/.{name}.{os.getpid()}.{time.monotonic_ns()}"
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            json.dump(data, file, separators=(",", ":"))
        os.replace(draft, path)
    except BaseException:
        os.unlink(draft)
        raise


def read_json(path: str) -> "dict[str, object] | None":
    """The file's object, or None if there is no such file or no object in it."""
    try:
        with open(path, encoding="ascii") as file:
            data = json.load(file)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    return data if isinstance(data, dict) else None


def take_lock(path: str, *, patience: float = 0.0) -> "int | None":
    """An open descriptor that holds the file's exclusive lock until it is closed, or None while another has it.

    The kernel gives a lock back when its holder dies, so a lock that can be taken proves the holder dead, whatever
    became of its process id. Raises `OSError` if the file cannot be opened.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    deadline = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                os.close(descriptor)
                return None
            time.sleep(0.01)
        else:
            return descriptor


def ring(path: str) -> None:
    """Wake the controller that listens at this FIFO, if one does."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    except OSError:  # nobody listens: whoever starts to will look at everything first
        return
    try:
        os.write(descriptor, b"\n")
    except OSError as error:
        if error.errno not in (errno.EAGAIN, errno.EPIPE):  # full: it is awake already
            raise
    finally:
        os.close(descriptor)
