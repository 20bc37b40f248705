"""The enumerations of report and section files.

Fields hold plain ints, because a file of a newer version may hold numbers that are not listed here.
"""

from __future__ import annotations

from enum import IntEnum


class MessageType(IntEnum):
    """What a rule's message is. Releases before 2023.1 cannot open a file with OPTIMIZATION."""

    NONE = 0
    OK = 1
    WARNING = 2
    ERROR = 3
    OPTIMIZATION = 4


class Severity(IntEnum):
    """How much a focus metric matters to its message."""

    DEFAULT = 0
    LOW = 1
    HIGH = 2


class Order(IntEnum):
    """How the metrics of a table fill it."""

    ROW_MAJOR = 0
    COLUMN_MAJOR = 1


class SortKey(IntEnum):
    """What the metrics of a table or chart are sorted by."""

    BY_LABEL = 0
    BY_VALUE = 1


class SortDirection(IntEnum):
    """Which way they are sorted."""

    ASCENDING = 0
    DESCENDING = 1


class Direction(IntEnum):
    """Which way the bars of a chart run."""

    HORIZONTAL = 0
    VERTICAL = 1


class Alignment(IntEnum):
    """On which side of a bar chart its value axis is."""

    DEFAULT = 0
    ALTERNATE = 1
    BOTH = 2


class CollectionScope(IntEnum):
    """What a metric is collected for: one action, or a range of them."""

    NONE = 0
    LAUNCH = 1
    RANGE = 2


class Importance(IntEnum):
    """Whether a metric that cannot be collected is an error (REQUIRED) or a warning."""

    UNSET = 0
    REQUIRED = 1
    OPTIONAL = 2


class ColorType(IntEnum):
    """How a color is given."""

    UNKNOWN = 0
    ARGB = 1


class NvtxMessageType(IntEnum):
    """How the message of an NVTX event is given."""

    UNKNOWN = 0
    ASCII = 1
    UNICODE = 2
    REGISTERED = 3


class NvtxPayloadType(IntEnum):
    """Which value field an NVTX payload uses; the numbers are those of `INvtxRange`."""

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
