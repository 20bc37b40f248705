"""Operations of instructions from sm_100 on: the low 9 bits of an opcode, and a register."""

from __future__ import annotations

OP_IADD3 = 0x010
OP_DMUL, OP_DADD, OP_DSETP, OP_DFMA = 0x28, 0x29, 0x2A, 0x2B
OP_IMMA, OP_HMMA, OP_DMMA = 0x37, 0x3C, 0x3F
NO_REGISTER = 0xFF  # RZ
