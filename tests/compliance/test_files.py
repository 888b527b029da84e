"""Whole files: each check holds on our own providers, and each finds the fault that it is there for."""

from __future__ import annotations

from typing import Any, ClassVar

from pytest_sandboxbench.compliance import files as checks
from pytest_sandboxbench.errors import ExecFailed
from tests.compliance.broken import Broken, BrokenSandbox
from tests.compliance.proof import Proof, faults_in


class TextMode(Broken):
    fails: ClassVar = {
        "what_is_written_is_read": "'line-ends' gave 9 bytes where 12 were written; they differ from byte 1 on"
    }

    class sandboxes(BrokenSandbox):
        async def write_file(self, path: str, data: bytes, *, deadline_s: float) -> None:
            await super().write_file(
                path, data.replace(b"\r\n", b"\n") if len(data) < 100 else data, deadline_s=deadline_s
            )


class Megabytes(Broken):
    fails: ClassVar = {"a_big_file_arrives_whole": "gave 16777216 bytes where 67108864 were written"}

    class sandboxes(BrokenSandbox):
        async def write_file(self, path: str, data: bytes, *, deadline_s: float) -> None:
            await super().write_file(path, data[: 16 * 2**20], deadline_s=deadline_s)


class DashIsStandardInput(Broken):
    fails: ClassVar = {"any_name_is_a_name": "read_file '-' gave 0 bytes where 4 were written"}

    class sandboxes(BrokenSandbox):
        async def read_file(self, path: str, *, deadline_s: float) -> bytes:
            return b"" if path == "-" else await super().read_file(path, deadline_s=deadline_s)


class StripsNames(Broken):
    fails: ClassVar = {"any_name_is_a_name": "read_file 'leading and trailing' gave"}

    class sandboxes(BrokenSandbox):
        async def write_file(self, path: str, data: bytes, *, deadline_s: float) -> None:
            await super().write_file(path.strip(), data, deadline_s=deadline_s)

        async def read_file(self, path: str, *, deadline_s: float) -> bytes:
            return await super().read_file(path.strip(), deadline_s=deadline_s)


class DoesNotTruncate(Broken):
    fails: ClassVar = {"writing_again_replaces": "read_file 'again' gave 17 bytes where 5 were written"}

    class sandboxes(BrokenSandbox):
        async def write_file(self, path: str, data: bytes, *, deadline_s: float) -> None:
            try:
                old = await super().read_file(path, deadline_s=deadline_s)
            except ExecFailed:
                old = b""
            await super().write_file(path, data + old[len(data) :], deadline_s=deadline_s)


class FilesLieElsewhere(Broken):
    fails: ClassVar = {"commands_see_what_is_written": "`cat seen` returned 1: .*No such file"}

    class sandboxes(BrokenSandbox):
        async def write_file(self, path: str, data: bytes, *, deadline_s: float) -> None:
            await super().write_file(f"elsewhere/{path}", data, deadline_s=deadline_s)

        async def read_file(self, path: str, *, deadline_s: float) -> bytes:
            return await super().read_file(f"elsewhere/{path}", deadline_s=deadline_s)


class OwnFilesOnly(Broken):
    fails: ClassVar = {"what_commands_write_is_read": "read_file made on .* failed: 404"}
    base = "null"

    class sandboxes(BrokenSandbox):
        def __init__(self, *inner: Any) -> None:
            super().__init__(*inner)
            self.written: set[str] = set()

        async def write_file(self, path: str, data: bytes, *, deadline_s: float) -> None:
            await super().write_file(path, data, deadline_s=deadline_s)
            self.written.add(path)

        async def read_file(self, path: str, *, deadline_s: float) -> bytes:
            if path not in self.written:
                raise ExecFailed(f"read_file {path}", sandbox=self.ref.id, said="404")
            return await super().read_file(path, deadline_s=deadline_s)


class MissingIsEmpty(Broken):
    fails: ClassVar = {"a_file_that_is_not_there_is_said": "read_file 'not-there', which is not there, raised nothing"}
    base = "null"

    class sandboxes(BrokenSandbox):
        async def read_file(self, path: str, *, deadline_s: float) -> bytes:
            try:
                return await super().read_file(path, deadline_s=deadline_s)
            except ExecFailed as error:
                if "No such file" not in error.said:
                    raise
                return b""


class NamelessError(Broken):
    fails: ClassVar = {"a_file_that_is_not_there_is_said": "raised an error without the name: read_file failed: 404"}

    class sandboxes(BrokenSandbox):
        async def read_file(self, path: str, *, deadline_s: float) -> bytes:
            try:
                return await super().read_file(path, deadline_s=deadline_s)
            except ExecFailed:
                raise ExecFailed("read_file", said="404") from None


class BareOSError(Broken):
    fails: ClassVar = {
        "a_file_that_is_not_there_is_said": "raised FileNotFoundError, not ExecFailed",
        "a_folder_is_no_file": "raised FileNotFoundError, not ExecFailed",
        "no_name_holds_a_nul": "raised FileNotFoundError, not ExecFailed",
    }

    class sandboxes(BrokenSandbox):
        async def read_file(self, path: str, *, deadline_s: float) -> bytes:
            try:
                return await super().read_file(path, deadline_s=deadline_s)
            except ExecFailed as error:
                raise FileNotFoundError(path) from error


class FolderIsListed(Broken):
    fails: ClassVar = {"a_folder_is_no_file": r"read_file '\.', which is a folder, raised nothing"}
    base = "null"

    class sandboxes(BrokenSandbox):
        async def read_file(self, path: str, *, deadline_s: float) -> bytes:
            return b"a\nb\n" if path in (".", "/") else await super().read_file(path, deadline_s=deadline_s)


class WritesNowhere(Broken):
    fails: ClassVar = {"what_cannot_be_written_is_said": "write_file 'folder', after .*, raised nothing"}
    base = "null"

    class sandboxes(BrokenSandbox):
        async def write_file(self, path: str, data: bytes, *, deadline_s: float) -> None:
            try:
                await super().write_file(path, data, deadline_s=deadline_s)
            except ExecFailed as error:
                if "irectory" not in error.said:
                    raise


class CutsAtNul(Broken):
    fails: ClassVar = {"no_name_holds_a_nul": r"write_file 'cut\\0off' raised nothing"}

    class sandboxes(BrokenSandbox):
        async def write_file(self, path: str, data: bytes, *, deadline_s: float) -> None:
            await super().write_file(path.partition("\0")[0], data, deadline_s=deadline_s)


FAULTS = faults_in(globals(), Broken)


class TestFiles(Proof):
    group: ClassVar = checks
    faults: ClassVar = FAULTS
    slow: ClassVar = {"a_big_file_arrives_whole": "bubblewrap"}
