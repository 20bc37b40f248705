"""The enumerations of report and section files.

Fields hold plain ints, because a file of a newer version may hold numbers that are not listed here.
"""

from __future__ import annotations

from enum import IntEnum


class MessageType(IntEnum):
    """The type of a message; Nsight Compute before 2023.1 cannot open a file with OPTIMIZATION."""

    NONE = 0
    OK = 1
    WARNING = 2
    ERROR = 3
    OPTIMIZATION = 4


class Severity(IntEnum):
    """The importance of a focus metric for its message."""

    DEFAULT = 0
    LOW = 1
    HIGH = 2


class Order(IntEnum):
    """The order in which metrics fill a table."""

    ROW_MAJOR = 0
    COLUMN_MAJOR = 1


class SortKey(IntEnum):
    """The sort key of the metrics of a table or chart."""

    BY_LABEL = 0
    BY_VALUE = 1


class SortDirection(IntEnum):
    """The direction of sorting."""

    ASCENDING = 0
    DESCENDING = 1


class Direction(IntEnum):
    """The direction of the bars of a chart."""

    HORIZONTAL = 0
    VERTICAL = 1


class Alignment(IntEnum):
    """The side of a bar chart on which the value axis is."""

    DEFAULT = 0
    ALTERNATE = 1
    BOTH = 2


class CollectionScope(IntEnum):
    """The scope for which a metric is collected: one kernel or phase, or a range of them."""

    NONE = 0
    LAUNCH = 1
    RANGE = 2


class Importance(IntEnum):
    """Whether a missing metric is an error (REQUIRED) or at most a warning (the others)."""

    UNSET = 0
    REQUIRED = 1
    OPTIONAL = 2


class ColorType(IntEnum):
    """The encoding of a color in a number."""

    UNKNOWN = 0
    ARGB = 1


class NvtxMessageType(IntEnum):
    """The encoding of an NVTX event's message; a REGISTERED one is stored as a handle."""

    UNKNOWN = 0
    ASCII = 1
    UNICODE = 2
    REGISTERED = 3


class NvtxPayloadType(IntEnum):
    """The value field that an NVTX payload uses; numbers up to 7 are those of `INvtxRange`."""

    UNKNOWN = 0
    UINT64 = 1
    INT64 = 2
    DOUBLE = 3
    UINT32 = 4
    INT32 = 5
    FLOAT = 6
    JSON = 7
    JSON_REGISTERED = 8


class Platform(IntEnum):
    """The operating system of a `SystemInfo`."""

    UNKNOWN = 0
    WINDOWS = 1
    LINUX = 2
    ANDROID = 3
    OSX = 4
    QNX = 5
    HOS = 6
    INTEGRITY = 7
    LINUX_PPC = 8
