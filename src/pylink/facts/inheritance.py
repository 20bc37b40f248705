"""What a kernel's attributes take over from those of the functions that it reaches.

One row per attribute; `compiled` packs them for ``pylink._native.info``. The experiments stand in
docs/format-notes.md, "Attributes of kernels".
"""

from __future__ import annotations

from pylink.facts.attributes import BVAL, HVAL, NUMBER, NVAL, SVAL

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
    (NUMBER["SPARSE_MMA_MASK"], HVAL, JOIN_UNION, JOIN_UNION),
    (NUMBER["CTAIDZ_USED"], NVAL, JOIN_FLAG, JOIN_FLAG),
    (NUMBER["RESERVED_SMEM_USED"], NVAL, JOIN_FLAG, JOIN_FLAG),
    (NUMBER["VRC_CTA_INIT_COUNT"], BVAL, JOIN_MAXIMUM, JOIN_OWN),
    (NUMBER["TCGEN05_1CTA_USED"], NVAL, JOIN_FLAG, JOIN_FLAG),
    (NUMBER["TCGEN05_2CTA_USED"], NVAL, JOIN_FLAG, JOIN_FLAG),
    (NUMBER["NUM_BARRIERS"], BVAL, JOIN_MAXIMUM, JOIN_POSITIVE),
    (NUMBER["REG_RECONFIG"], NVAL, JOIN_LAST, JOIN_MARK),
    (NUMBER["NUM_MBARRIERS"], HVAL, JOIN_SUM, JOIN_COUNT),
    (NUMBER["EXTERNS"], SVAL, JOIN_SYMBOLS, JOIN_SYMBOLS),
    (NUMBER["AT_ENTRY_FRAGMENTS"], SVAL, JOIN_NUMBERS, JOIN_NUMBERS),
)
# Rows that later releases have besides, with the toolkit of the first.
LATER: tuple[tuple[int, tuple[int, int, int, int]], ...] = (
    (132, (NUMBER["LANGUAGE"], SVAL, JOIN_WORDS, JOIN_WORDS)),
)


def compiled(toolkit: int) -> bytes:
    """The rows of a release as packed bytes: attribute, format, how, how with one kernel."""
    rows = (*INHERITED, *(row for since, row in LATER if since <= toolkit))
    return b"".join(bytes(row) for row in rows)
