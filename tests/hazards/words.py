"""The control word of an instruction: bits 105 to 125 of its 128.

The hardware does not know whether a register that an instruction reads is ready. The compiler says
how long to wait, in each instruction: cycles until the next one may be issued (stall), the
scoreboard that counts until its result is written or its sources are read, and the scoreboards that
must be zero before it is issued itself.
"""

from __future__ import annotations

from dataclasses import dataclass

SIZE = 16  # bytes of an instruction
NONE = 7  # no scoreboard; there are six
SCOREBOARDS = range(6)

STALL, YIELD, WRITE, READ, WAIT, REUSE = 105, 109, 110, 113, 116, 122


@dataclass(frozen=True)
class Control:
    """Stall in cycles, scoreboards or NONE, and the mask of scoreboards to wait for."""

    stall: int
    write: int
    read: int
    wait: int


def control(encoding: int) -> Control:
    """The control word of one encoding."""
    return Control(
        encoding >> STALL & 15,
        encoding >> WRITE & 7,
        encoding >> READ & 7,
        encoding >> WAIT & 63,
    )


def encodings(code: bytes) -> list[int]:
    """The instructions of a function, as numbers."""
    return [
        int.from_bytes(code[at : at + SIZE], "little")
        for at in range(0, len(code) - SIZE + 1, SIZE)
    ]
