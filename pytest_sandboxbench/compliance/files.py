"""Whole files, in and out."""

from __future__ import annotations

from .check import among

__all__ = ["CHECKS"]

CHECKS = among(tuple(globals().values()))
