"""Formats of rows that native code exchanges as bytes; made by `pylink.facts.rowformats`."""

from __future__ import annotations

from struct import Struct

# EntryRow of inputs/fatbinrows.pxd.
ENTRY = Struct("<IIIIIIQQQQQ")
# SourceRow of inputs/fatbinrows.pxd.
SOURCE = Struct("<QQQQQQQQQQQQQQQQ")
# FaultRow of inputs/fatbinrows.pxd.
FAULT = Struct("<IiQQQ")
# PickRow of inputs/picks.pxd.
PICK = Struct("<IiIIIBBBBQQQQQQ")
# DynamicRow of inputs/sharedlibs.pyx.
DYNAMIC = Struct("<IIQQQ")
# MovedRow of debug/rows.pxd.
MOVED = Struct("<QQ")
# TimeRow of base/clocks.pxd.
TIME = Struct("<QQQQ")
# FileCount of reports/counts.pyx.
FILE_COUNT = Struct("<QQQQQQQQQQQ")
# KindCount of reports/counts.pyx.
KIND_COUNT = Struct("<QQQQQQQQQQ")
