"""Which interpreter guests get, and why."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_sandboxbench.errors import UsageError
from pytest_sandboxbench.providers import guest_python
from pytest_sandboxbench.providers.guest_python import find_guest_python, guest_uid, readable_by

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="local sandboxes need a POSIX system")


def version_of(path: str) -> str:
    code = "import sys; print('.'.join(map(str, sys.version_info[:3])))"
    return subprocess.run([path, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_the_harness_own_interpreter_where_the_guest_may_read_it() -> None:
    found = find_guest_python(uid=os.geteuid())
    assert found is not None
    assert Path(found.executable).resolve() == Path(sys.executable).resolve()
    assert found.version == version_of(found.executable)
    assert all(Path(found.executable).is_relative_to(bind) for bind in found.binds[:1])


def test_the_choice_runs_and_says_why_it_is_another() -> None:
    found = find_guest_python()
    if found is None:
        pytest.skip("no Python that a guest could use")
    assert found.version == version_of(found.executable)
    assert readable_by(Path(found.executable), guest_uid())
    same = Path(found.executable).resolve() == Path(sys.executable).resolve()
    assert same is not bool(found.reason)
    assert found.facts()["guest_python"] == found.executable


def test_an_interpreter_that_the_guest_cannot_read_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guest_python, "readable_by", lambda path, uid: False)
    found = find_guest_python()
    if found is not None:
        assert found.executable == "/usr/bin/python3"
        assert "cannot read" in found.reason


def test_a_prefix_without_python3_needs_an_alias(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"python3.{sys.version_info.minor}"
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / name).symlink_to(Path(sys.executable).resolve())
    monkeypatch.setattr(sys, "base_prefix", str(tmp_path))
    found = find_guest_python(uid=os.geteuid())
    assert found is not None
    assert (Path(found.executable).name, found.alias) == (name, True)


def test_another_python3_in_the_same_folder_is_not_taken_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3").symlink_to("/bin/sh")
    monkeypatch.setattr(sys, "base_prefix", str(tmp_path))
    found = find_guest_python(uid=os.geteuid())
    assert found is None or not Path(found.executable).is_relative_to(tmp_path)


def test_a_whole_home_is_not_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "base_prefix", str(Path.home()))
    found = find_guest_python(uid=os.geteuid())
    assert found is None or str(Path.home()) not in found.binds


def test_the_option_overrides_and_a_virtual_environment_brings_its_base() -> None:
    found = find_guest_python(sys.executable, uid=os.geteuid())
    assert found is not None
    assert Path(found.executable).parent == Path(sys.executable).parent
    for prefix in (sys.prefix, sys.base_prefix):
        real = Path(prefix).resolve()
        assert any(real.is_relative_to(bind) for bind in (*found.binds, "/usr"))


@pytest.mark.parametrize("option", ["/no/such/python", "/bin/true", "/etc/passwd"])
def test_an_option_that_is_no_python_says_so(option: str) -> None:
    with pytest.raises(UsageError, match=f"python={option} is no Python"):
        find_guest_python(option)


def test_readable_by_another_user_needs_every_folder_on_the_way(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "file").write_text("x")
    stranger = os.geteuid() + 4711
    for folder in (tmp_path, *tmp_path.parents):
        if not folder.stat().st_mode & 1:
            assert not readable_by(inner / "file", stranger)
            return
    inner.chmod(0o700)
    assert not readable_by(inner / "file", stranger)
    inner.chmod(0o755)
    assert readable_by(inner / "file", stranger)
    assert readable_by(inner, stranger)
