"""Numbers of DWARF, versions 2 and 3: line programs, and call frames of 64-bit DWARF."""

from __future__ import annotations

# A unit of line programs begins: u32 unit_length, u16 version, u32 header_length,
# u8 minimum_instruction_length, u8 default_is_stmt, i8 line_base, u8 line_range, u8 opcode_base,
# then u8 standard_opcode_lengths, one for each opcode from 1 on. UNIT_ numbers are offsets of
# these fields; UNIT_STEP is that of minimum_instruction_length.
UNIT_VERSION, UNIT_HEADER_LENGTH, UNIT_STEP = 4, 6, 10
UNIT_LINE_BASE, UNIT_LINE_RANGE, UNIT_OPCODE_BASE = 12, 13, 14
# Standard and extended opcodes: DWARF names them DW_LNS_ and DW_LNE_. LNS_EXTENDED is the byte in
# front of the size and the number of an extended opcode.
LNS_EXTENDED, LNS_COPY, LNS_ADVANCE_PC, LNS_ADVANCE_LINE = 0, 1, 2, 3
LNS_CONST_ADD_PC, LNS_FIXED_ADVANCE_PC = 8, 9
LNE_END_SEQUENCE, LNE_SET_ADDRESS = 1, 2
LNE_INLINED_CALL = 0x90  # an extension of NVIDIA

# A record of call frames (FDE): u32 marker, u64 length, u64 CIE pointer, u64 initial_location,
# u64 address_range, call frame instructions. The length counts the bytes after its field. The other
# FDE_ numbers are offsets: of the CIE pointer, and of the fields after it.
FDE_MARKER = 0xFFFFFFFF
FDE_POINTER, FDE_ADDRESS, FDE_RANGE, FDE_INSTRUCTIONS = 12, 20, 28, 36
# Call frame instructions: DWARF names them DW_CFA_.
CFA_NOP = 0x00
CFA_ADVANCE_LOC4 = 0x04
CFA_OFFSET_EXTENDED = 0x05
CFA_RESTORE_EXTENDED = 0x06
CFA_UNDEFINED = 0x07
CFA_SAME_VALUE = 0x08
CFA_REGISTER = 0x09
CFA_REMEMBER_STATE = 0x0A
CFA_RESTORE_STATE = 0x0B
CFA_DEF_CFA = 0x0C
CFA_DEF_CFA_REGISTER = 0x0D
CFA_DEF_CFA_OFFSET = 0x0E
CFA_EXPRESSION = 0x10
