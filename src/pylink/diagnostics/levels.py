"""Severities as an enumeration, for those who look at records; links compare plain numbers."""

from __future__ import annotations

from enum import IntEnum

from pylink.diagnostics import severity


class Severity(IntEnum):
    """How grave a diagnostic is; what is graver compares as greater.

    From `CATASTROPHE` on a link ends at once. What is at most `DISCRETIONARY` an option may change.
    """

    NOTE = severity.NOTE
    REMARK = severity.REMARK
    WARNING = severity.WARNING
    CAUTION = severity.CAUTION
    DISCRETIONARY = severity.DISCRETIONARY
    ERROR = severity.ERROR
    CATASTROPHE = severity.CATASTROPHE
    COMMAND_LINE = severity.COMMAND_LINE
    INTERNAL = severity.INTERNAL

    @property
    def title(self) -> str:
        """The severity in words, such as `command-line error`."""
        return severity.NAMES[self]
