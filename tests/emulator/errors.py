"""What the emulator raises: every cause names the instruction, relocation, bank or address."""

from __future__ import annotations


class Unsupported(Exception):
    """The emulator does not know this opcode, modifier, operand, relocation or bank.

    Nothing unknown is ever skipped: a test whose program needs it fails until the table that
    would list it has a row.
    """


class Fault(Exception):
    """The program did what a GPU reports as an error, or what no correct program does."""


class BadImage(Exception):
    """The file is not an executable cubin that a driver could load."""
