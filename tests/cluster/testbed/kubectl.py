"""Run kubectl, and read what it says."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any


class KubectlError(RuntimeError):
    """kubectl ended with an error; the text is the command and what it wrote to stderr, `stderr` only the latter."""

    def __init__(self, arguments: tuple[str, ...], stderr: str) -> None:
        super().__init__(f"kubectl {' '.join(arguments)}: {stderr.strip()}")
        self.stderr = stderr


class Kubectl:
    """A kubectl bound to one kubeconfig."""

    def __init__(self, program: str, kubeconfig: Path | None) -> None:
        self.program = program
        self.kubeconfig = kubeconfig

    def run(self, *arguments: str, stdin: str | None = None, seconds: float = 60) -> str:
        """What it wrote to stdout.

        Raises KubectlError on an exit status other than 0 and when it takes longer than `seconds`.
        """
        return self.run_bytes(*arguments, stdin=stdin, seconds=seconds).decode()

    def run_bytes(self, *arguments: str, stdin: str | None = None, seconds: float = 60) -> bytes:
        """The same byte for byte: carriage returns, and bytes that are no text, stay."""
        environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
        if self.kubeconfig is not None:
            environment["KUBECONFIG"] = str(self.kubeconfig)
        try:
            done = subprocess.run(
                [self.program, *arguments],
                input=None if stdin is None else stdin.encode(),
                stdin=subprocess.DEVNULL if stdin is None else None,
                env=environment,
                capture_output=True,
                timeout=seconds,
                check=False,
            )
        except subprocess.TimeoutExpired as late:
            raise KubectlError(arguments, f"no answer within {seconds:.0f} s") from late
        if done.returncode != 0:
            raise KubectlError(arguments, done.stderr.decode(errors="replace"))
        return done.stdout

    def works(self, *arguments: str) -> bool:
        """Whether the command succeeds; for probing."""
        return self.answer(*arguments) is not None

    def answer(self, *arguments: str) -> str | None:
        """Its output, or None when it fails or takes longer than five seconds; for probing."""
        try:
            return self.run(*arguments, seconds=5)
        except KubectlError:
            return None

    def json(self, *arguments: str) -> Any:
        """The parsed answer of the command with `-o json` (or of `--raw`, which is JSON without being asked)."""
        return json.loads(self.run(*arguments, *(() if "--raw" in arguments else ("-o", "json"))))

    def apply(self, *objects: dict[str, Any]) -> None:
        """Server-side apply, taking over fields from whoever had them."""
        document = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
        self.run("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=document)
