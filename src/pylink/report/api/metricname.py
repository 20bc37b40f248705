"""Reads the type, the rollup and the unit of a metric from its name.

    unit__(subunit?)_(pipestage?)_quantity_(qualifiers?)[.rollup[.submetric]]

`dram__bytes_read.sum.per_second` is a counter with the rollup "sum" and the submetric "per second".
Report files do not contain types, rollups and units, so only the names show them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum

from pylink.report.sections.patterns import PATTERNS


class MetricType(IntEnum):
    """The type of a metric; OTHER for attributes, settings and derived values."""

    OTHER = 0
    COUNTER = 1
    RATIO = 2
    THROUGHPUT = 3


class Rollup(IntEnum):
    """The operation that combines the values of several hardware units, such as all SMs."""

    AVG = 1
    MAX = 2
    MIN = 3
    SUM = 4


class Subtype(IntEnum):
    """The submetric in a name, such as `.per_second`: how the value is scaled or expressed."""

    PEAK_SUSTAINED = 1
    PEAK_SUSTAINED_ACTIVE = 2
    PEAK_SUSTAINED_ACTIVE_PER_SECOND = 3
    PEAK_SUSTAINED_ELAPSED = 4
    PEAK_SUSTAINED_ELAPSED_PER_SECOND = 5
    PEAK_SUSTAINED_FRAME = 6
    PEAK_SUSTAINED_FRAME_PER_SECOND = 7
    PEAK_SUSTAINED_REGION = 8
    PEAK_SUSTAINED_REGION_PER_SECOND = 9
    PER_CYCLE_ACTIVE = 10
    PER_CYCLE_ELAPSED = 11
    PER_CYCLE_IN_FRAME = 12
    PER_CYCLE_IN_REGION = 13
    PER_SECOND = 14
    PCT_OF_PEAK_SUSTAINED_ACTIVE = 15
    PCT_OF_PEAK_SUSTAINED_ELAPSED = 16
    PCT_OF_PEAK_SUSTAINED_FRAME = 17
    PCT_OF_PEAK_SUSTAINED_REGION = 18
    MAX_RATE = 19
    PCT = 20
    RATIO = 21


@dataclass(frozen=True, slots=True)
class MetricName:
    """The parsed name of a metric."""

    quantity: str  # the text before the first dot
    type: MetricType
    rollup: Rollup | None
    subtype: Subtype | None


# Enumeration members by their spelling in names of metrics.
_ROLLUPS = {rollup.name.lower(): rollup for rollup in Rollup}
_SUBTYPES = {subtype.name.lower(): subtype for subtype in Subtype}
_RATIOS = {"ratio": Subtype.RATIO, "pct": Subtype.PCT, "max_rate": Subtype.MAX_RATE}
# Metrics whose names begin like this have type OTHER, whatever stands after the dot.
_PREFIXES_OF_OTHER = (*PATTERNS, "device__", "launch__", "derived__", "profiler__")
_THROUGHPUT = re.compile(r"_throughput(_|$)")

# Metrics for which Nsight Compute shows another unit than the words in the name would give.
_UNITS_BY_NAME = tuple(
    (re.compile(expression), unit)
    for expression, unit in (
        (r"launch__occupancy_limit_\w+", "block"),
        (r"launch__block_size|memory_(access_(size_)?)?type", ""),
        (r"\w+_threads_divergent(\.\w+)?|\w+_compression_achieved_rate\.ratio", ""),
        (r"memory_(l1|l2)_(tag_requests|theoretical_sectors|wavefronts)_\w+", "sectors"),
        (r"derived__memory_(l1|l2)_\w+", "byte"),
        (r"derived__sm(sp)?__sass_thread_inst_executed_\w+_x2", "thread"),
        (r"\w+_writeback_active\w*\.sum", "cycle"),
        (r"sm(sp)?__maximum_warps_avg_per_active_cycle", "warp"),
        (r"smsp__average_warps_issue_stalled_\w+_per_issue_active\.ratio", "inst"),
        (r"smsp__average_warp(s_active|_latency)_per_inst_\w+\.ratio", "cycle"),
    )
)

# Words of a quantity and their units. The first row whose word is in the quantity counts.
_UNITS_BY_WORD = (
    ("bytes", "byte"), ("byte", "byte"), ("sectors", "sector"), ("sector", "sector"),
    ("requests", "request"), ("wavefronts", ""), ("conflicts", ""), ("duration", "nsecond"),
    ("frequency", "hz"), ("percent", "%"), ("pct", "%"), ("transactions", "transaction"),
    ("cycles", "cycle"), ("cycle", "cycle"), ("inst", "inst"), ("instructions", "inst"),
    ("warps", "warp"), ("warp", "warp"), ("threads", "thread"), ("thread", "thread"),
    ("blocks", "block"), ("block", "block"), ("ctas", "block"), ("cta", "block"),
    ("registers", "register"), ("register", "register"), ("seconds", "second"),
    ("second", "second"), ("memory", "byte"), ("mem", "byte"),
)  # fmt: skip


def parse(name: str) -> MetricName:
    """Parse a name; one that does not follow the pattern has the type OTHER."""
    quantity, *suffixes = name.removeprefix("pmsampling:").split(".")
    metric_type, rollup, subtype = MetricType.OTHER, None, None
    if suffixes and not name.startswith(_PREFIXES_OF_OTHER):
        suffix, submetric = suffixes[0], ".".join(suffixes[1:])
        if suffix in _RATIOS:
            metric_type, subtype = MetricType.RATIO, _RATIOS[suffix]
        elif suffix in _ROLLUPS:
            metric_type = (
                MetricType.THROUGHPUT if _THROUGHPUT.search(quantity) else MetricType.COUNTER
            )
            rollup, subtype = _ROLLUPS[suffix], _SUBTYPES.get(submetric)
    return MetricName(quantity, metric_type, rollup, subtype)


def fill_label(template: str, name: str) -> str:
    """Replace {UNIT} and {COMPOUND_NAME} in a label by words of a metric's name.

    As in Nsight Compute, "{UNIT}: {COMPOUND_NAME}" and `dram__bytes_read.sum` give
    "DRAM: Bytes Read".
    """
    unit_name, _, quantity = name.partition(".")[0].partition("__")
    quantity = quantity.replace("_", " ").title()
    return template.replace("{UNIT}", unit_name.upper()).replace("{COMPOUND_NAME}", quantity)


def unit(name: str) -> str:
    """Return the unit of a metric as Nsight Compute spells it ("byte", "nsecond", "%"), "" if none.

    The result is the unit of the quantity, divided by a cycle or a second if the submetric says so.
    """
    for pattern, unit_name in _UNITS_BY_NAME:
        if pattern.fullmatch(name):
            return unit_name
    quantity, _, suffix = name.removeprefix("pmsampling:").partition(".")
    if name.startswith("device__attribute_"):
        return ""
    if quantity.endswith("_pct") or re.search(r"(^|\.)pct(_of_peak_sustained_\w+)?$", suffix):
        return "%"
    dividend, separator, divisor = quantity.partition("_per_")
    dividend_unit = _unit_of_words(dividend)
    if separator:
        divisor_unit = _unit_of_words(divisor)
        return (
            f"{dividend_unit}/{divisor_unit}"
            if dividend_unit and divisor_unit and dividend_unit != divisor_unit
            else ""
        )
    submetric = suffix.rpartition(".")[2]
    if dividend_unit in ("", "warp"):  # warps per cycle have the unit warp
        return dividend_unit
    if submetric.endswith("per_second"):
        return f"{dividend_unit}/second"
    if submetric.startswith(("per_cycle", "peak_sustained")):
        return f"{dividend_unit}/cycle"
    return dividend_unit


def _unit_of_words(text: str) -> str:
    """Return the unit for the words of a quantity, such as "byte" for `bytes_read`; "" if none."""
    words = set(re.split("[^A-Za-z0-9]+", text.partition("__")[2] or text))
    return next((unit_name for word, unit_name in _UNITS_BY_WORD if word in words), "")
