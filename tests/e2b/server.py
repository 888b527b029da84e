"""The local imitation of E2B as a process of its own, as a user starts it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

__all__ = ["KEY", "Local", "serving"]

KEY = "e2b_0123456789abcdef0123456789abcdef01234567"


class Local:
    def __init__(self, process: subprocess.Popen[str], url: str) -> None:
        self.process = process
        self.url = url

    @property
    def env(self) -> dict[str, str]:
        """What leads the SDK here."""
        return {"E2B_API_KEY": KEY, "E2B_API_URL": self.url, "E2B_SANDBOX_URL": self.url}

    def about(self) -> dict[str, Any]:
        """Sandboxes with their state, requests by operation, connections."""
        found: dict[str, Any] = json.loads(self.get("/_sandboxbench")[1])
        return found

    @property
    def requests(self) -> dict[str, int]:
        found: dict[str, int] = self.about()["requests"]
        return found

    @property
    def sandboxes(self) -> dict[str, str]:
        found: dict[str, str] = self.about()["sandboxes"]
        return found

    def fault(self, *scripts: str) -> None:
        status, said, _ = self.get("/_sandboxbench/faults", method="POST", body=list(scripts))
        assert status == 204, said

    def get(
        self, path: str, *, method: str = "GET", body: Any = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, bytes, dict[str, str]]:
        """A request without any SDK: status, body and headers."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self.url + path, data, {"Content-Type": "application/json", **(headers or {})}, method=method
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as reply:
                return reply.status, reply.read(), dict(reply.headers)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read(), dict(error.headers)


@contextmanager
def serving(*arguments: str) -> Iterator[Local]:
    """Until it is told to end, which it has to do in order."""
    command = [sys.executable, "-m", "pytest_sandboxbench.cli", "serve", "e2b", "--port", "0", "--key", KEY, *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"})
    assert process.stdout is not None
    try:
        url = ""
        for line in process.stdout:
            if "E2B_API_URL=" in line:
                url = line.partition("E2B_API_URL=")[2].split()[0]
            if line.startswith("Ctrl-C"):
                break
        assert url, "it did not start"
        yield Local(process, url)
    finally:
        process.send_signal(signal.SIGINT)
        try:
            status = process.wait(30)
        finally:
            process.kill()
            process.stdout.close()
    assert status == 0
