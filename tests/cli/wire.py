"""A line between the command and the portal that breaks after so many bytes of each connection."""

import contextlib
import socket
import threading


class BreakingLine:
    """Passes bytes on. While `after` is set, a connection is cut as soon as the portal has sent more than that; while
    `refused` is, when a request contains it."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._server = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._server.getsockname()[1]}"
        self.after: int | None = None
        self.refused: bytes | None = None
        self.cuts = 0
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self._server.close()

    def _serve(self) -> None:
        while True:
            try:
                near, _ = self._server.accept()
            except OSError:
                return
            far = socket.create_connection(("127.0.0.1", self._port))
            threading.Thread(target=self._pass_on, args=(near, far), daemon=True).start()
            threading.Thread(target=self._give_back, args=(far, near), daemon=True).start()

    def _pass_on(self, near: socket.socket, far: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := near.recv(65536):
                if self.refused is not None and self.refused in data:
                    self.cuts += 1
                    break
                far.sendall(data)
        for each in (near, far):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _give_back(self, far: socket.socket, near: socket.socket) -> None:
        sent = 0
        with contextlib.suppress(OSError):
            while data := far.recv(4096):
                sent += len(data)
                if self.after is not None and sent > self.after:
                    self.cuts += 1
                    break
                near.sendall(data)
        for each in (near, far):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
