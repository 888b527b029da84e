"""What continuous integration reads: nothing of a sandbox becomes a command of GitHub's, Markdown or HTML."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_sandboxbench.report import ci


def test_an_annotation_is_one_line_and_begins_nothing_else() -> None:
    text = ci.annotation("error", "a:b,c\n::set-env", "one\n::error::two\x1b[31m\r50%")
    assert text.count("\n") == 0
    assert text.startswith("::error title=a%3Ab%2Cc")
    assert text.count("::") - text.split("::", 2)[2].count("::") == 2
    assert "\x1b" not in text
    assert text.endswith("50%25")


def test_a_summary_shows_markup_as_text() -> None:
    text = ci.step_summary("<b>", [("fail", "<script>|[x](http://y) `z`\nnext")], ["```", "<img>"])
    assert "<b>" not in text
    assert "<script>" not in text
    assert "\\[x\\](http://y)" in text
    assert "\\|" in text
    assert "<br>next" in text
    assert "\n    ```\n    <img>\n" in text


def test_a_summary_that_is_too_large_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary"))
    assert ci.write_step_summary("é\n" * 600_000) == ""
    data = (tmp_path / "summary").read_bytes()
    assert len(data) < 1 << 20
    assert data.decode().endswith("cut: there was more\n")


def test_a_summary_that_cannot_be_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path))
    assert "was not written" in ci.write_step_summary("x")
