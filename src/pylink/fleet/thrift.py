"""The compact protocol of Thrift, in which Parquet files store their metadata.

See https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md. A value is
its type and its bytes; fields of a structure have numbers, stored as differences.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    Value = tuple[int, bytes]  # type, and packed bytes

# Numbers of types.
I32, I64, BINARY, LIST, STRUCT = 5, 6, 8, 9, 12


def struct(*fields: tuple[int, Value]) -> bytes:
    """Pack a structure of fields (number, value), in ascending order of numbers."""
    packed = bytearray()
    last = 0
    for number, (kind, data) in fields:
        packed.append(number - last << 4 | kind)
        packed += data
        last = number
    packed.append(0)
    return bytes(packed)


def list_of(kind: int, items: Sequence[bytes]) -> Value:
    """Return a list of packed items as a value: the type, and the packed bytes."""
    size = len(items)
    head = bytes([size << 4 | kind]) if size < 15 else bytes([0xF0 | kind]) + varint(size)
    return LIST, head + b"".join(items)


def i32(value: int) -> Value:
    """Return a 32-bit integer as a value: the type, and the packed bytes."""
    return I32, zigzag(value)


def i64(value: int) -> Value:
    """Return a 64-bit integer as a value: the type, and the packed bytes."""
    return I64, zigzag(value)


def binary(value: bytes) -> Value:
    """Return bytes, or a text in UTF-8, as a value: the type, and the bytes after their count."""
    return BINARY, varint(len(value)) + value


def zigzag(value: int) -> bytes:
    """Pack a signed integer: 0, -1, 1, -2 become the varints 0, 1, 2, 3."""
    return varint(2 * value if value >= 0 else -2 * value - 1)


def varint(value: int) -> bytes:
    """Pack a number in groups of 7 bits, the low ones first; bit 7 says that another follows."""
    data = bytearray()
    while value >= 128:
        data.append(value & 127 | 128)
        value >>= 7
    data.append(value)
    return bytes(data)
