"""``sandboxbench check NAME``: each promise of the protocol tried on a provider, one after another, and a card."""

from __future__ import annotations

import argparse
import asyncio
import io
import os
import shutil
import signal
import sys
import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TextIO

from .. import threads
from ..compliance.check import Check
from ..compliance.checks import CHECKS
from ..compliance.run import Verdict, run_check
from ..errors import ProviderMissing, UsageError
from ..load.deadlines import bounded, describe
from ..load.preflight import DECLARES, PREFLIGHT_S, ask_provider, secrets_of
from ..model import Capabilities, Preflight
from ..providers.registry import Registry
from ..records.redaction import hide, hide_values
from ..report.text import clip, harmless
from ..termination import Termination
from .card import Card, Line, listing

__all__ = ["run"]

_COLOURS = {"head": "1", "good": "32", "bad": "31"}


def run(arguments: argparse.Namespace) -> int:
    """Status 0 when everything passed, 1 when something failed or the provider cannot run here, 130 after Ctrl-C.

    SIGTERM is like Ctrl-C.
    """
    if arguments.list:
        if arguments.name is not None:
            raise UsageError("--list prints all checks, of no provider: leave the name out")
        print(listing(_chosen(arguments.text)), end="")
        return 0
    name: str | None = arguments.name
    if name is None:
        raise UsageError(f"name a provider to check; there are: {', '.join(Registry(Path.cwd()).names)}")
    registry = Registry(Path.cwd(), [(name, *_setting(text)) for text in arguments.option])
    kind = registry.kind(name)
    registry.spec(name)
    chosen = _chosen(arguments.text)
    with _masked(secrets_of(registry)):
        return _run(arguments, registry, name, kind, chosen)


def _run(arguments: argparse.Namespace, registry: Registry, name: str, kind: str, chosen: list[Check]) -> int:
    started = time.monotonic()
    verdicts: list[Verdict] = []
    termination = Termination()
    termination.install()
    try:
        answer, can = threads.run(_introduce(registry, name))
        if can is None:
            print(f"sandboxbench: {name} is not ready: {harmless(f'{answer.reason}. {answer.cure}')}", file=sys.stderr)
            return 1
        cut = ""
        try:
            with closing(_verdicts(registry, name, chosen, arguments.timeout)) as found:
                for verdict in found:
                    verdicts.append(verdict)
                    if arguments.first and verdict.outcome == "failed":
                        cut = "stopped at a failure"
                        break
        except KeyboardInterrupt:
            cut = "interrupted"
    except KeyboardInterrupt:
        print("sandboxbench: interrupted before the first check", file=sys.stderr)
        return _status_of(termination)
    finally:
        termination.uninstall()
    card = Card(name, kind, answer.facts, can, verdicts, len(chosen), len(CHECKS), time.monotonic() - started, cut)
    _print(card.lines(_width()))
    if cut == "interrupted":
        return _status_of(termination)
    return 1 if card.failed else 0


class _Masked(io.TextIOBase):
    """A standard stream that writes by line, without secrets: what an adapter prints, or logs, may hold its key."""

    def __init__(self, stream: TextIO, secrets: Sequence[str]) -> None:
        super().__init__()
        self._stream = stream
        self._secrets = secrets
        self._begun = ""

    @property
    def buffer(self) -> _MaskedBytes:
        return _MaskedBytes(self)

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._stream.encoding

    @property
    def errors(self) -> str | None:  # type: ignore[override]
        return self._stream.errors

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return self._stream.isatty()

    def fileno(self) -> int:
        return self._stream.fileno()

    def write(self, text: str, /) -> int:
        text_ = hide_values(self._begun + text, self._secrets)
        whole, end, self._begun = text_.rpartition("\n")
        if end:
            self._stream.write(whole + end)
        return len(text)

    def flush(self) -> None:
        begun, self._begun = self._begun, ""
        if begun:
            self._stream.write(begun)
        self._stream.flush()


class _MaskedBytes(io.RawIOBase):
    def __init__(self, text: _Masked) -> None:
        super().__init__()
        self._text = text

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        self._text.write(bytes(data).decode(errors="replace"))
        return len(data)

    def flush(self) -> None:
        pass  # also when it is thrown away


@contextmanager
def _masked(secrets: Sequence[str]) -> Iterator[None]:
    """Both standard streams without these secrets; a handler of logs that was made meanwhile stays so."""
    before = sys.stdout, sys.stderr
    masked = [stream and _Masked(stream, secrets) for stream in before]  # None: closed by who started it
    sys.stdout, sys.stderr = masked
    try:
        yield
        for stream in masked:
            if stream:
                stream.flush()
    finally:
        sys.stdout, sys.stderr = before


def _status_of(interruption: Termination) -> int:
    """What a shell gives for a process that a signal ended."""
    return 128 + (interruption.number or signal.SIGINT)


def _chosen(texts: Sequence[str]) -> list[Check]:
    """The checks with one of these texts in their name; all without a text."""
    found = [check for check in CHECKS if not texts or any(text.lower() in str(check).lower() for text in texts)]
    if not found:
        groups = ", ".join(dict.fromkeys(check.group for check in CHECKS))
        raise UsageError(
            f"no check has {' or '.join(map(repr, texts))} in its name; their groups are {groups}, "
            "and `sandboxbench check --list` prints all"
        )
    return found


def _setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not (equals and key):
        raise UsageError(f"--option {hide(text)!r} is not KEY=VALUE; write for example --option memory_mib=512")
    return key, value


async def _introduce(registry: Registry, name: str) -> tuple[Preflight, Capabilities | None]:
    """What a provider says of itself, and what it declares; None when it cannot run here."""
    answer, provider = await ask_provider(registry, name)
    if provider is None:
        return answer, None
    try:
        if not answer.ready:
            return answer, None
        can = provider.capabilities
        if not isinstance(can, Capabilities):
            raise TypeError(f"capabilities is {type(can).__name__}, not pytest_sandboxbench.model.Capabilities")
    except Exception as error:
        said = hide(describe(error), secrets_of(registry))
        return Preflight(False, said, DECLARES), None
    finally:
        try:
            await bounded("aclose", provider.aclose(), PREFLIGHT_S)
        except Exception:
            pass  # each check closes its own, and fails where that fails
    return answer, can


def _verdicts(
    registry: Registry, name: str, checks: Sequence[Check], timeout_s: float
) -> Generator[Verdict, None, None]:
    """One after another. Ctrl-C cancels the one that runs, which destroys what it made, and comes out of here."""
    with asyncio.Runner() as runner:
        threads.use_daemons(runner.get_loop())
        failed, patient = 0, True
        try:
            for number, check in enumerate(checks, 1):
                _progress(f"{number} of {len(checks)}{f', {failed} failed' if failed else ''}: {check}")
                try:
                    verdict = runner.run(run_check(registry, name, check, timeout_s, patient=patient))
                except ProviderMissing as error:
                    verdict = Verdict(check, "failed", str(error), 0.0)  # it was ready when it was asked
                patient = patient and not verdict.still_listed
                failed += verdict.outcome == "failed"
                yield verdict
        finally:
            _progress("")


def _progress(text: str) -> None:
    if sys.stderr is not None and sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[2K{clip(text, _width() - 1)}")
        sys.stderr.flush()


def _width() -> int:
    return min(100, max(60, shutil.get_terminal_size().columns))


def _print(lines: Iterable[Line]) -> None:
    plain = (
        sys.stdout is None or not sys.stdout.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    )
    for line in lines:
        colour = "" if plain else _COLOURS.get(line.kind, "")
        print(f"\x1b[{colour}m{line.text}\x1b[0m" if colour else line.text)
