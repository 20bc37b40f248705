"""What a kernel's attributes take over from those of the functions that it reaches.

One row per attribute; `compiled` packs them for ``pylink._native.info``. The experiments stand in
docs/format-notes.md, "Attributes of kernels".
"""

from __future__ import annotations

from pylink.facts.attributes import BVAL, HVAL, NVAL, SVAL

# How a function's value joins the kernel's.
JOIN_NOTHING = 0  # stays where it is
JOIN_FLAG = 1  # the record is there; its value means nothing
JOIN_MAXIMUM = 2
JOIN_SUM = 3  # 0xffff is a number that is not known
JOIN_LAST = 4  # the last function's value counts
JOIN_UNION = 5  # bits; a function without the record has them unknown
JOIN_SYMBOLS = 6  # a list of external functions
JOIN_NUMBERS = 7  # a list of numbers, which the functions themselves lose
JOIN_OWN = 8  # the largest value, but a kernel's own record stays as it is
JOIN_POSITIVE = 9  # as JOIN_MAXIMUM, but a value of 0 brings no record
JOIN_COUNT = 10  # as JOIN_SUM, but a value of 0 brings no record
JOIN_MARK = 11  # as JOIN_FLAG, written with a value of 0
JOIN_WORDS = 12  # a list of words, each once, which the functions keep

# Attribute, format of a record that a kernel gets, how values join, and how they do in a link with
# one kernel, which takes over from all functions, attribute by attribute in this order.
INHERITED: tuple[tuple[int, int, int, int], ...] = (
    (0x50, HVAL, JOIN_UNION, JOIN_UNION),  # SPARSE_MMA_MASK
    (0x04, NVAL, JOIN_FLAG, JOIN_FLAG),  # CTAIDZ_USED
    (0x41, NVAL, JOIN_FLAG, JOIN_FLAG),  # RESERVED_SMEM_USED
    (0x4A, BVAL, JOIN_MAXIMUM, JOIN_OWN),  # VRC_CTA_INIT_COUNT
    (0x51, NVAL, JOIN_FLAG, JOIN_FLAG),  # TCGEN05_1CTA_USED
    (0x52, NVAL, JOIN_FLAG, JOIN_FLAG),  # TCGEN05_2CTA_USED
    (0x4C, BVAL, JOIN_MAXIMUM, JOIN_POSITIVE),  # NUM_BARRIERS
    (0x54, NVAL, JOIN_LAST, JOIN_MARK),  # REG_RECONFIG
    (0x38, HVAL, JOIN_SUM, JOIN_COUNT),  # NUM_MBARRIERS
    (0x0F, SVAL, JOIN_SYMBOLS, JOIN_SYMBOLS),  # EXTERNS
    (0x4F, SVAL, JOIN_NUMBERS, JOIN_NUMBERS),  # AT_ENTRY_FRAGMENTS
)
# Rows that later releases have besides, with the toolkit of the first.
LATER: tuple[tuple[int, tuple[int, int, int, int]], ...] = (
    (132, (0x66, SVAL, JOIN_WORDS, JOIN_WORDS)),  # LANGUAGE
)


def compiled(toolkit: int) -> bytes:
    """The rows of a release as packed bytes: attribute, format, how, how with one kernel."""
    rows = (*INHERITED, *(row for since, row in LATER if since <= toolkit))
    return b"".join(bytes(row) for row in rows)
