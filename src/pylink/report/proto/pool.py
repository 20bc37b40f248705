"""The pool that the messages live in.

It is pylink's own: in protobuf's default pool the names would clash in a process that also loads
another set of definitions for these files.
"""

from __future__ import annotations

from typing import Any

try:
    from google.protobuf import descriptor_pool, message_factory
except ImportError as error:
    raise ImportError(
        "reading and writing report files needs the protobuf package: "
        "run `pip install 'pylink-cuda[report]'`",
        name=error.name,
    ) from error

_POOL = descriptor_pool.DescriptorPool()


def define(namespace: dict[str, Any], file: str, serialized: bytes) -> None:
    """Put the classes of a compiled .proto file into the module that has this namespace."""
    _POOL.AddSerializedFile(serialized)
    messages = _POOL.FindFileByName(file).message_types_by_name
    for name, descriptor in messages.items():
        namespace[name] = message_factory.GetMessageClass(descriptor)
