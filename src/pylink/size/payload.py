"""Payloads of entries, as the ledger counts them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Payload:
    """One payload: `data`, or `packed` bytes of a file at `offset`, which become `full` bytes.

    `codec` is 0 or a codec of `pylink.inputs.payload`, `kind` that of the entry, which has the
    number `entry`. It takes `installed` bytes in the file and `download` bytes in the archive.
    With `compressed` it is compressed again.
    """

    data: bytes | None
    offset: int
    packed: int
    full: int
    codec: int
    kind: int
    entry: int
    installed: int
    download: int
    compressed: bool
