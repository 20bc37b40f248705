"""The attributes of .nv.info that a kernel inherits from the functions that it reaches.

One row per attribute; `pack_rows` packs them for `pylink._native.info`. The experiments are in
docs/format-notes.md, "Attributes of kernels".
"""

from __future__ import annotations

from pylink.facts.attributes import BVAL, EIATTR_NUMBER, HVAL, NVAL, SVAL

# Rules that join a function's value with the kernel's.
JOIN_NOTHING = 0  # the kernel does not inherit it
JOIN_FLAG = 1  # only the presence of the record counts
JOIN_MAXIMUM = 2  # the largest value
JOIN_SUM = 3  # the sum; 0xffff, which stands for unknown, if a value is that
JOIN_LAST = 4  # the last function's value counts
JOIN_UNION = 5  # bits that any value has; they are unknown for a function without the record
JOIN_SYMBOLS = 6  # lists of external functions; each adds what the joined list lacks
JOIN_NUMBERS = 7  # likewise lists of numbers; in an executable, the functions lose theirs
JOIN_OWN = 8  # the largest value; a record that the kernel itself has stays unchanged
JOIN_POSITIVE = 9  # like JOIN_MAXIMUM, but a value of 0 creates no record
JOIN_COUNT = 10  # like JOIN_SUM, but a value of 0 creates no record
JOIN_MARK = 11  # like JOIN_FLAG, written with a value of 0
JOIN_WORDS = 12  # lists of words without duplicates; the functions keep theirs
JOIN_BITS = 13  # bits that any value has; those of a function without the record are 0

# A row has the first toolkit whose nvlink follows it (132: 13.2; 0: all), the attribute, the format
# of the kernel's record, the rule that joins values, and the rule for a lone kernel. That
# is the only root of a link: a kernel, with a selection a selected one. It inherits from all live
# functions, one attribute after the other in the order of the rows.
INHERITED: tuple[tuple[int, int, int, int, int], ...] = (
    (0, EIATTR_NUMBER["SPARSE_MMA_MASK"], HVAL, JOIN_UNION, JOIN_UNION),
    (0, EIATTR_NUMBER["CTAIDZ_USED"], NVAL, JOIN_FLAG, JOIN_FLAG),
    (0, EIATTR_NUMBER["RESERVED_SMEM_USED"], NVAL, JOIN_FLAG, JOIN_FLAG),
    (132, EIATTR_NUMBER["CLUSTER_LAUNCH_CONTROL_USED"], NVAL, JOIN_FLAG, JOIN_FLAG),
    (0, EIATTR_NUMBER["VRC_CTA_INIT_COUNT"], BVAL, JOIN_MAXIMUM, JOIN_OWN),
    (0, EIATTR_NUMBER["TCGEN05_1CTA_USED"], NVAL, JOIN_FLAG, JOIN_FLAG),
    (0, EIATTR_NUMBER["TCGEN05_2CTA_USED"], NVAL, JOIN_FLAG, JOIN_FLAG),
    (0, EIATTR_NUMBER["NUM_BARRIERS"], BVAL, JOIN_MAXIMUM, JOIN_POSITIVE),
    (0, EIATTR_NUMBER["REG_RECONFIG"], NVAL, JOIN_LAST, JOIN_MARK),
    (0, EIATTR_NUMBER["NUM_MBARRIERS"], HVAL, JOIN_SUM, JOIN_COUNT),
    (0, EIATTR_NUMBER["EXTERNS"], SVAL, JOIN_SYMBOLS, JOIN_SYMBOLS),
    (0, EIATTR_NUMBER["AT_ENTRY_FRAGMENTS"], SVAL, JOIN_NUMBERS, JOIN_NUMBERS),
    (132, EIATTR_NUMBER["LANGUAGE"], SVAL, JOIN_WORDS, JOIN_WORDS),
    (133, EIATTR_NUMBER["GRID_ATTRIBUTES"], HVAL, JOIN_BITS, JOIN_BITS),
)


def pack_rows(toolkit: int) -> bytes:
    """Return the rows for a toolkit, such as 132, with a byte for each column after the first."""
    return b"".join(bytes(row) for since, *row in INHERITED if since <= toolkit)
