"""A secret that the run has been given appears nowhere: no record, report, JSON, junit, nor on the terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_sandboxbench.cli import main

from .conftest import Suite, printed

TOKEN = "tok-5f3a9c1e77d04b2b"
KEY = "key-0a1b2c3d4e5f6071"

# A provider with a secret setting, that says it wherever a careless adapter could.
PROVIDER = """
import os
from dataclasses import dataclass

from pytest_sandboxbench.errors import CreateFailed
from pytest_sandboxbench.model import Preflight
from pytest_sandboxbench.providers import fake

def factory(name, options):
    options = dict(options)
    token = options.pop("api_token", "")
    mode = options.pop("mode", "")

    class Careless(fake.OneShotFakeProvider):
        async def preflight(self):
            if mode == "missing":
                return Preflight(False, f"the service refused {token}", f"check {os.environ['CLOUD_API_KEY']}")
            return Preflight(True, facts={"version": f"1 ({token})", "key": os.environ["CLOUD_API_KEY"]})

        async def create(self, spec, *, owner, deadline_s):
            if mode == "create":
                raise CreateFailed("create", said=f"401 for {token} and {os.environ['CLOUD_API_KEY']}")
            return await super().create(spec, owner=owner, deadline_s=deadline_s)

        async def destroy(self, ref, *, deadline_s):
            if mode == "destroy":
                raise KeyError(f"{token} {os.environ['CLOUD_API_KEY']}")
            await super().destroy(ref, deadline_s=deadline_s)

    return Careless(name, fake.read_plan(name, options))
"""


@pytest.fixture
def cloud(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> Suite:
    suite.write(careless=PROVIDER, test_one=BENCHES)
    folder = suite.path / "careless-1.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: careless\nVersion: 1\n")
    (folder / "entry_points.txt").write_text("[sandboxbench.providers]\ncloud = careless:factory\n")
    monkeypatch.setenv("PYTHONPATH", str(suite.path))
    monkeypatch.setenv("CLOUD_API_KEY", KEY)
    return suite


BENCHES = """
    import pytest

    @pytest.mark.sandbox_bench("exec")
    async def test_exec(sandbox_bench):
        await sandbox_bench.measure()

    async def test_use(sandbox):
        assert sandbox.id
"""


def everything(suite: Suite) -> dict[str, str]:
    """All files that the run wrote, but those that the test itself wrote."""
    ours = {"careless.py", "test_one.py", "entry_points.txt", "METADATA", "tox.ini"}
    paths = [path for path in suite.path.rglob("*") if path.is_file() and path.name not in ours]
    assert {"out.json", "junit.xml"} <= {path.name for path in paths}
    return {str(path): path.read_bytes().decode("utf-8", "replace") for path in paths if path.suffix != ".pyc"}


@pytest.mark.parametrize(
    ("mode", "workers"),
    [
        ("", ()),
        ("create", ()),
        ("destroy", ()),
        ("missing", ()),
        pytest.param("create", ("-n", "2"), marks=pytest.mark.full),
    ],
)
def test_a_secret_is_nowhere(
    cloud: Suite, capsys: pytest.CaptureFixture[str], mode: str, workers: tuple[str, ...]
) -> None:
    arguments = ["--sandbox-provider=cloud", "--sandbox-samples=2", f"--sandbox-option=cloud.api_token={TOKEN}"]
    arguments += [f"--sandbox-option=cloud.mode={mode}"] if mode else []
    outputs = ["--benchmark-json=out.json", "--junitxml=junit.xml", "-ra", "-vv", "--tb=short"]
    (cloud.path / "out.json").touch()
    result = cloud.pytester.run(*cloud.command(*arguments, *outputs, *workers), timeout=60)
    assert result.ret == {"": 0, "create": 1, "destroy": 1, "missing": 5}[mode], printed(result)
    texts = everything(cloud) | {"terminal": printed(result)}
    capsys.readouterr()
    for folder in cloud.folders:
        main(["report", "--all", "--partial", str(folder)])
    texts["report"] = "".join(capsys.readouterr())
    found = {Path(name).name: secret for name, text in texts.items() for secret in (TOKEN, KEY) if secret in text}
    assert found == {}


def test_a_mistake_in_a_secret_setting_does_not_show_it(cloud: Suite) -> None:
    option = f"--sandbox-option=fake.api_token={TOKEN}"
    result = cloud.pytester.run(*cloud.command("--sandbox-provider=fake", option), timeout=60)
    assert result.ret == 4
    assert TOKEN not in printed(result)


def test_a_value_that_is_no_setting_at_all_is_not_shown(cloud: Suite) -> None:
    result = cloud.pytester.run(*cloud.command(f"--sandbox-option=api_token={TOKEN}"), timeout=60)
    assert result.ret == 4
    assert TOKEN not in printed(result)
