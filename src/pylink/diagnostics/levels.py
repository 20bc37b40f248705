"""Severities as an enumeration, for callers of the API; pylink itself compares plain numbers."""

from __future__ import annotations

from enum import IntEnum

from pylink.diagnostics import severity


class Severity(IntEnum):
    """The severity of a diagnostic; a graver one compares as greater.

    From `CATASTROPHE` on a diagnostic ends the link at once. Options can change severities up to
    `DISCRETIONARY`.
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


def logging_level(level: int) -> int:
    """Return the level of Python's `logging`, such as 40 (ERROR), for a severity.

    Severities that end a link at once are critical (50).
    """
    if level >= severity.CATASTROPHE:
        return 50
    if level >= severity.DISCRETIONARY:
        return 40
    if level >= severity.WARNING:
        return 30
    return 20 if level >= severity.REMARK else 10
