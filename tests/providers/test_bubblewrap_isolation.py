"""What a guest must not be able to do. The canary is a file of its own, in a folder of its own, bound read-only."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_sandboxbench.model import ExecResult, Owner, SandboxSpec
from pytest_sandboxbench.providers import bubblewrap
from pytest_sandboxbench.providers.bubblewrap import BubblewrapProvider
from pytest_sandboxbench.providers.bubblewrap_sandbox import BubblewrapSandbox
from pytest_sandboxbench.providers.guest_python import HOST_UID, guest_uid

from .bubblewrap_runs import D, run, shell, within

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap needs Linux"),
    pytest.mark.usefixtures("bubblewrap_ready"),
]

ROOT = sys.platform == "linux" and os.geteuid() == 0


@pytest.fixture
def canary() -> Iterator[Path]:
    """A file that the guest's user owns, so that nothing but the read-only bind keeps it from writing."""
    folder = Path(tempfile.mkdtemp(prefix="sandboxbench-canary-", dir="/var/tmp"))
    file = folder / f"canary-{os.getpid()}"
    file.write_text("alive")
    for path in (folder, file):
        os.chown(path, guest_uid(), -1)
    folder.chmod(0o755)
    try:
        yield file
        assert file.read_text() == "alive", "the guest wrote to the host"
        assert list(folder.iterdir()) == [file], "the guest made a file on the host"
    finally:
        shutil.rmtree(folder)


REMOUNT = "mount -o remount,bind,rw {folder}; umount -l {folder}; mount -t tmpfs none {folder}"
WRITE = "echo dead > {file}; touch {folder}/made; rm -f {file}; mv {file} {folder}/moved; chmod 777 {file}"
ATTEMPTS = {
    "plain": WRITE,
    "remount": f"{REMOUNT}; {WRITE}",
    "user namespace": f"unshare -Ur sh -c '{REMOUNT}; {WRITE}'",
    "mount namespace": f"unshare -Urm sh -c '{REMOUNT}; {WRITE}'",
    "all namespaces": f"unshare -UrmpfCni sh -c '{REMOUNT}; {WRITE}'",
    "enter the first process": f"nsenter -t 1 -U -m --preserve-credentials sh -c '{REMOUNT}; {WRITE}'",
    "enter as its root": f"nsenter -t 1 -U -m -S 0 -G 0 sh -c '{REMOUNT}; {WRITE}'",
    "enter its mounts": f"nsenter -t 1 -m -r -w sh -c '{REMOUNT}; {WRITE}'",
    "uid tricks": f"setpriv --reuid=0 sh -c '{WRITE}'; su -c '{WRITE}'; sudo -n sh -c '{WRITE}'; newgrp root",
    "chroot": f"chroot /proc/1/root sh -c '{WRITE}'; unshare -Ur chroot /proc/1/root sh -c '{REMOUNT}; {WRITE}'",
    "open files": "for f in /proc/[0-9]*/fd/*; do echo dead > $f/../../../../../..{file}; echo dead > $f{file}; done",
    "roots and folders": "for f in /proc/[0-9]*/root /proc/[0-9]*/cwd; do echo dead > $f/../../../../..{file}; done",
}


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_the_canary_lives(owner: Owner, canary: Path, attempt: str) -> None:
    script = ATTEMPTS[attempt].format(folder=canary.parent, file=canary)
    said = shell(owner, f"{script}; cat {canary}", binds=(str(canary.parent),))
    assert "alive" in said, "the canary was not even visible"


@pytest.mark.parametrize("attempt", ["plain", "mount namespace", "roots and folders"])
def test_the_canary_lives_in_a_one_shot(owner: Owner, canary: Path, attempt: str) -> None:
    async def main() -> ExecResult:
        provider = bubblewrap.factory("bubblewrap", {"binds": str(canary.parent)})
        script = ATTEMPTS[attempt].format(folder=canary.parent, file=canary)
        argv = ["sh", "-c", f"{script}; cat {canary}"]
        result, ref = await provider.run_once(SandboxSpec(), argv, owner=owner, deadline_s=D)
        await provider.destroy(ref, deadline_s=D)
        await provider.aclose()
        return result

    assert b"alive" in asyncio.run(main()).stdout


@pytest.mark.parametrize("process", ["self", "1", "2"])
def test_no_process_inside_has_or_can_get_privileges(owner: Owner, process: str) -> None:
    status = dict(
        line.split(":", 1) for line in shell(owner, f"cat /proc/{process}/status").splitlines() if ":" in line
    )
    assert status["Uid"].split() == ["1000"] * 4
    assert status["NoNewPrivs"].strip() == "1"
    for kind in ("CapEff", "CapPrm", "CapInh", "CapAmb"):
        assert int(status[kind], 16) == 0, kind


def test_the_guest_is_nobody_special_on_the_host(owner: Owner) -> None:
    inside, outside, count = shell(owner, "cat /proc/self/uid_map").split()
    assert (inside, count) == ("1000", "1")
    assert int(outside) == (HOST_UID if ROOT else os.geteuid())
    assert shell(owner, "id -G").split() == ["1000"]


def test_no_setting_of_the_kernel_can_be_opened_for_writing(owner: Owner) -> None:
    """A guest that the host sees as root could: core_pattern runs a program of its choice as the host's root."""
    script = """
import os
for top in ("/proc/sys", "/proc/irq", "/proc/bus", "/proc/fs", "/proc/sysrq-trigger", "/proc/mtrr"):
    for folder, _, names in list(os.walk(top)) or [("/proc", [], [os.path.basename(top)])]:
        for name in names:
            try:
                os.close(os.open(os.path.join(folder, name), os.O_WRONLY))
                print(os.path.join(folder, name))
            except OSError:
                pass
"""
    found = set(run(owner, "python3", "-c", script).stdout.decode().split())
    # Of its own pid namespace, and refused without a capability in that.
    assert found <= {"/proc/sys/kernel/ns_last_pid"}


@pytest.mark.skipif(not ROOT, reason="an ordinary user's own cgroups are its own")
@pytest.mark.parametrize("kind", ["cgroup2", "cgroup -o freezer", "cgroup -o memory"])
def test_no_cgroup_hierarchy_can_be_written(owner: Owner, kind: str) -> None:
    script = f"mkdir /tmp/m; mount -t {kind} none /tmp/m; find /tmp/m -writable -type f"
    assert "cgroup." not in shell(owner, f"unshare -UrmC sh -c '{script}'")


def test_no_file_of_the_harness_is_open_inside(owner: Owner) -> None:
    for process in ("self", "2"):
        found = shell(owner, f"ls -l /proc/{process}/fd").splitlines()
        targets = {line.split(" -> ")[-1].split(":")[0] for line in found if " -> " in line}
        assert {target for target in targets if target.startswith("/")} <= {"/dev/null"} | {
            target for target in targets if target.startswith("/proc/")
        }


def test_etc_is_not_the_hosts(owner: Owner) -> None:
    assert "No such file" in shell(owner, "cat /etc/shadow")
    assert shell(owner, "cat /etc/passwd").count("\n") == 2
    assert shell(owner, "whoami").strip() == "sandbox"


@pytest.mark.skipif(not ROOT, reason="only root's guests could")
def test_a_file_for_root_alone_is_not_readable_even_when_it_is_shown(owner: Owner) -> None:
    folder = Path(tempfile.mkdtemp(prefix="sandboxbench-canary-", dir="/var/tmp"))
    try:
        folder.chmod(0o755)
        secret = folder / "secret"
        secret.write_text("s3cr3t")
        secret.chmod(0o600)
        said = shell(owner, f"cat {secret}", binds=(str(folder),))
    finally:
        shutil.rmtree(folder)
    assert "Permission denied" in said
    assert "s3cr3t" not in said


def test_no_network_but_loopback(owner: Owner) -> None:
    assert [line.split(":")[0].strip() for line in shell(owner, "tail -n +3 /proc/net/dev").splitlines()] == ["lo"]


def test_the_hosts_network_when_asked_for(owner: Owner) -> None:
    devices = shell(owner, "cat /proc/net/dev; readlink /proc/self/ns/net", spec=SandboxSpec(network=True))
    assert str(Path("/proc/self/ns/net").readlink()) in devices


def test_nothing_of_the_host_is_seen(owner: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_THE_HARNESS", "x")
    said = shell(owner, "env; hostname; ls / /proc /home /root /var; cat /proc/1/environ")
    assert "SECRET" not in said
    assert "sandbox\n" in said
    assert len([word for word in said.split() if word.isdigit()]) < 8, "processes of the host"


@pytest.mark.parametrize("path", ["/work/link", "link"])
def test_a_link_of_the_guest_is_not_followed_on_the_host(owner: Owner, canary: Path, path: str) -> None:
    async def act(provider: BubblewrapProvider, sandbox: BubblewrapSandbox) -> bytes:
        await sandbox.exec(["ln", "-s", str(canary), "link"], deadline_s=D)
        await sandbox.exec(["mkdir", "-p", "folder"], deadline_s=D)
        with pytest.raises(Exception, match=r"No such file|nonexistent|cannot create|Directory"):
            await sandbox.write_file(path, b"dead", deadline_s=D)
        with pytest.raises(Exception, match="No such file"):
            await sandbox.read_file(path, deadline_s=D)
        await sandbox.exec(["ln", "-s", "/etc/passwd", "passwd"], deadline_s=D)
        return await sandbox.read_file("passwd", deadline_s=D)

    assert b"sandbox:x:1000" in within(owner, act)


def test_removing_what_a_guest_made_follows_no_link(owner: Owner, canary: Path) -> None:
    script = f"""
    ln -s {canary.parent} folder; ln -s {canary} file; ln -s / root; mkdir -p a/b; ln -s {canary.parent} a/b/c
    mkdir locked; touch locked/x; ln -s {canary.parent} locked/l; chmod 000 locked a/b; mkfifo pipe
    mkdir deep; cd deep; python3 -c "
import os
for _ in range(1500):
    os.mkdir('d'); os.chdir('d')"
    """
    shell(owner, script, binds=(str(canary.parent),))


def test_the_root_of_the_guest_is_read_only(owner: Owner) -> None:
    assert "Read-only" in shell(owner, "touch /new")
    assert shell(owner, "touch /work/a /tmp/b /dev/shm/c && echo made") == "made\n"
