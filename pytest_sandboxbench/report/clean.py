"""What pytest shows of a run, without secrets and without anything that a terminal would obey.

An adapter's exception may hold its key, what it logs and warns of too; the words of a sandbox may move the cursor.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection
from typing import Any

import pytest

from ..records.logs import WithoutSecrets
from ..records.redaction import hide_values
from ..records.untrusted import inert

__all__ = ["Cleaner"]

_HANDLERS = ("caplog_handler", "report_handler", "log_file_handler", "log_cli_handler")


class Cleaner:
    """Knows the secrets of a run. Nothing that is clean is touched."""

    def __init__(self, secrets: Collection[str]) -> None:
        self._secrets = tuple(secrets)

    def text(self, text: str) -> str:
        return inert(hide_values(text, self._secrets))

    def report(self, report: pytest.TestReport, *, ours: bool = True) -> None:
        """Secrets go from any test's report; what a terminal obeys from those of ours: others may mean it."""

        def clean(text: str) -> str:
            return self.text(text) if ours else hide_values(text, self._secrets)

        told = report.longrepr
        if isinstance(told, tuple):
            report.longrepr = (told[0], told[1], clean(told[2]))
        elif told is not None and (text := str(told)) != (cleaned := clean(text)):
            report.longrepr = cleaned
        report.sections = [(name, clean(text)) for name, text in report.sections]

    def warning(self, recorded: warnings.WarningMessage) -> None:
        """Before pytest has shown it. ``recorded`` is changed."""
        text = str(recorded.message)
        if (cleaned := self.text(text)) != text:
            recorded.message = UserWarning(cleaned)

    def logs(self, config: pytest.Config) -> None:
        """From now on, for what pytest writes of logs: its reports, --log-file and --log-cli-level."""
        plugin: Any = config.pluginmanager.get_plugin("logging-plugin")
        for name in _HANDLERS:
            handler = getattr(plugin, name, None)
            if handler is not None and not any(isinstance(one, WithoutSecrets) for one in handler.filters):
                handler.addFilter(WithoutSecrets(self._secrets))
