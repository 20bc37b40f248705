"""Payloads of entries, as the ledger counts them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Payload:
    """One payload: `packed` bytes, in `data` or in a file at `offset`, which become `full` bytes.

    `data` is None for bytes that are in a file. `codec` is a `Codec`, 0 for stored bytes. `kind` is
    the `EntryKind` of the entry, and `entry` its number in the ledger. The payload takes
    `installed` bytes in the file, with padding, and `download` bytes in the archive, 0 outside one.
    With `is_recompressed` it is also compressed as zstd, to measure the result.
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
    is_recompressed: bool
