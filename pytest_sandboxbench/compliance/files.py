"""Whole files, in and out."""

from __future__ import annotations

import random

from ..errors import ExecFailed, Unsupported
from ..load.guard import GuardedSandbox
from .check import Trial, among, check, expect, raises, shown

__all__ = ["CHECKS"]

_MIB = 2**20
_CHUNK = 1 << 16
_EVERY_BYTE = bytes(range(256))
_NAMES = (
    "plain",
    "with space",
    "leading and trailing",
    " leading and trailing ",
    "quote'\"`$(echo no)\\n;*?",
    "line",
    "line\nbreak",
    "grüße-日本-🙂",
    "-n",
    "--help",
    "-",
    "~",
    ".hidden",
    "x" * 200,
)


async def _round_trip(sandbox: GuardedSandbox, name: str, data: bytes) -> None:
    await sandbox.write_file(name, data)
    _same(await sandbox.read_file(name), data, f"read_file {name!r}")


def _same(came: bytes, data: bytes, what: str) -> None:
    if came == data:
        return
    at = min(len(came), len(data))
    for start in range(0, at, _CHUNK):
        one, other = came[start : start + _CHUNK], data[start : start + _CHUNK]
        if one != other:
            at = start + next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), len(one))
            break
    expect(
        False,
        f"{what} gave {len(came)} bytes where {len(data)} were written; they differ from byte {at} on: "
        f"{shown(came[at : at + 20])} instead of {shown(data[at : at + 20])}",
    )


@check("files")
async def what_is_written_is_read(trial: Trial) -> None:
    """`read_file` gives the very bytes of `write_file`: none at all, every value, line ends, 1 MiB of noise."""
    sandbox = await trial.sandbox()
    for name, data in (
        ("empty", b""),
        ("every-byte", _EVERY_BYTE),
        ("not-utf8", b"\xff\xfe\x00\x80"),
        ("line-ends", b"a\r\nb\nc\rd\r\n\r\n"),
        ("no-line-end", b"last"),
        ("noise", random.Random(1).randbytes(_MIB)),
    ):
        await _round_trip(sandbox, name, data)


@check("files")
async def a_big_file_arrives_whole(trial: Trial) -> None:
    """A file of 64 MiB (8 MiB where it is hosted) is written and read back."""
    sandbox = await trial.sandbox()
    await _round_trip(sandbox, "big", random.Random(2).randbytes((8 if trial.can.hosted else 64) * _MIB))


@check("files")
async def any_name_is_a_name(trial: Trial) -> None:
    """Spaces, quotes, line breaks, letters of any language and leading dashes are parts of a file's name."""
    sandbox = await trial.sandbox()
    for name in _NAMES:
        await sandbox.write_file(name, f"in {name}".encode())
    for name in _NAMES:
        _same(await sandbox.read_file(name), f"in {name}".encode(), f"read_file {name!r}")


@check("files")
async def writing_again_replaces(trial: Trial) -> None:
    """A second `write_file` replaces the file: nothing stays of what was longer."""
    sandbox = await trial.sandbox()
    await _round_trip(sandbox, "again", b"a long first text")
    await _round_trip(sandbox, "again", b"short")
    await _round_trip(sandbox, "again", b"")


@check("files", "exec")
async def commands_see_what_is_written(trial: Trial) -> None:
    """A relative path lies in the working directory of commands: `cat NAME` prints what `write_file(NAME)` wrote."""
    sandbox = await trial.sandbox()
    await sandbox.write_file("seen", _EVERY_BYTE)
    result = await sandbox.exec(["cat", "seen"])
    said = shown(result.stderr) if result.exit_code else shown(result.stdout)
    expect(
        result.exit_code == 0 and result.stdout == _EVERY_BYTE,
        f"after write_file('seen') of every byte, `cat seen` returned {result.exit_code}: {said}",
    )


@check("files", "exec", "shell")
async def what_commands_write_is_read(trial: Trial) -> None:
    """`read_file` reads what a command wrote, by its relative and by its absolute path."""
    sandbox = await trial.sandbox()
    folder = (
        await trial.sh(sandbox, "printf 'by a command' >made; mkdir -p below; printf deep >below/made; pwd")
    ).strip()
    for path, data in (("made", b"by a command"), ("below/made", b"deep")):
        _same(await sandbox.read_file(path), data, f"read_file {path!r}, which a command wrote,")
        absolute = f"{folder.decode()}/{path}"
        _same(await sandbox.read_file(absolute), data, f"read_file {absolute!r}, which a command wrote as {path},")
    await _round_trip(sandbox, f"{folder.decode()}/below/new", b"into a folder that a command made")


@check("files")
async def a_file_that_is_not_there_is_said(trial: Trial) -> None:
    """Reading a file that is not there raises ExecFailed that names it, and the sandbox works on."""
    sandbox = await trial.sandbox()
    for name in ("not-there", "no-folder/not-there"):
        with raises(f"read_file {name!r}, which is not there,", ExecFailed) as raised:
            await sandbox.read_file(name)
        expect("not-there" in str(raised.error), f"read_file {name!r} raised an error without the name: {raised.error}")
    await _round_trip(sandbox, "after-a-failure", b"works")


@check("files")
async def a_folder_is_no_file(trial: Trial) -> None:
    """Reading a folder raises ExecFailed, and the sandbox works on."""
    sandbox = await trial.sandbox()
    for name in (".", "/"):
        with raises(f"read_file {name!r}, which is a folder,", ExecFailed):
            await sandbox.read_file(name)
    await _round_trip(sandbox, "after-a-failure", b"works")


@check("files", "exec", "shell")
async def what_cannot_be_written_is_said(trial: Trial) -> None:
    """Writing to a folder, or below what is a file, raises ExecFailed, and the sandbox works on."""
    sandbox = await trial.sandbox()
    await trial.sh(sandbox, "mkdir folder; echo file >file")
    for name in ("folder", "file/below"):
        with raises(f"write_file {name!r}, after `mkdir folder; echo file >file`,", ExecFailed):
            await sandbox.write_file(name, b"x")
    await _round_trip(sandbox, "folder/inside", b"works")


@check("files")
async def no_name_holds_a_nul(trial: Trial) -> None:
    """A path with a NUL byte raises ExecFailed (or Unsupported), and touches no file of a shorter name."""
    sandbox = await trial.sandbox()
    await sandbox.write_file("cut", b"kept")
    with raises("write_file 'cut\\0off'", ExecFailed, Unsupported):
        await sandbox.write_file("cut\0off", b"lost")
    with raises("read_file 'cut\\0off'", ExecFailed, Unsupported):
        await sandbox.read_file("cut\0off")
    _same(await sandbox.read_file("cut"), b"kept", "after write_file 'cut\\0off', read_file 'cut'")


CHECKS = among(tuple(globals().values()))
