"""Secrets in what is logged: a record is told without them, wherever it goes."""

from __future__ import annotations

import logging
from collections.abc import Collection

from .redaction import hide_values

__all__ = ["WithoutSecrets"]

_FORMAT = logging.Formatter()


class WithoutSecrets(logging.Filter):
    """For a handler: lets every record through, its text, its traceback and its extra fields without these secrets."""

    def __init__(self, secrets: Collection[str]) -> None:
        super().__init__()
        self._secrets = tuple(secrets)

    def filter(self, record: logging.LogRecord) -> bool:
        try:
            text = record.getMessage()
        except Exception:
            # It does not fit its arguments: who formats it will say so, and show them.
            text = f"{record.msg} {record.args!r}"
        if (hidden := hide_values(text, self._secrets)) != text:
            record.msg, record.args = hidden, ()
        if record.exc_info and not record.exc_text:
            record.exc_text = _FORMAT.formatException(record.exc_info)  # what every formatter then takes
        if record.exc_text:
            record.exc_text = hide_values(record.exc_text, self._secrets)
        if record.stack_info:
            record.stack_info = hide_values(record.stack_info, self._secrets)
        return True
