"""The classes of the messages, created at their first use, such as `messages.ProfileResult`.

They are in a descriptor pool of their own. In protobuf's default pool, the names would clash if the
process also loaded other definitions of the same messages.
"""

from __future__ import annotations

from typing import Any

from pylink.packages.extras import need
from pylink.report.proto.compiled import FILES

descriptor_pool = need("google.protobuf.descriptor_pool", "a report file")
message_factory = need("google.protobuf.message_factory")
_POOL = descriptor_pool.DescriptorPool()
# Messages are in several packages of protobuf; no two messages have the same name.
_DESCRIPTORS = {
    name: message
    for file in map(_POOL.AddSerializedFile, FILES)
    for name, message in file.message_types_by_name.items()
}


def __getattr__(name: str) -> Any:
    """Return the protobuf class of a message; an enumeration is inside one: `SortKeyType.Value`."""
    if name not in _DESCRIPTORS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    message_class = globals()[name] = message_factory.GetMessageClass(_DESCRIPTORS[name])
    return message_class
