"""What a driver writes into constant bank 0 in front of a kernel's parameters.

Learnt from code that ptxas makes for special registers and generic addresses. Offsets that no row
has are unknown: reading one is an error that names it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Layout:
    """Offsets in bytes into constant bank 0. `words` are of 4 bytes, `addresses` of 8."""

    parameters: int
    words: dict[str, int]
    addresses: dict[str, int]
    shared_start: int  # bytes of shared memory that the system keeps at its beginning


_OLD_WORDS = {
    "ntid.x": 0x0,
    "ntid.y": 0x4,
    "ntid.z": 0x8,
    "nctaid.x": 0xC,
    "nctaid.y": 0x10,
    "nctaid.z": 0x14,
    "stack": 0x28,
    "dynamic_shared": 0x2C,
    "grid_low": 0x30,
    "grid_high": 0x34,
    "nsm": 0x10C,
    "reserved_shared": 0x114,
}
_OLD_WINDOWS = {"shared_window": 0x18, "local_window": 0x20}

SM_80 = Layout(
    parameters=0x160,
    words=_OLD_WORDS,
    addresses=_OLD_WINDOWS | {"parameters": 0x40, "constants": 0x50, "descriptor": 0x118},
    shared_start=0,
)
SM_90 = Layout(
    parameters=0x210,
    words=_OLD_WORDS | {"explicit_cluster": 0x140, "cluster_blocks": 0x188},
    addresses=_OLD_WINDOWS | {"parameters": 0x198, "constants": 0xD0, "descriptor": 0x208},
    shared_start=0x400,
)
SM_100 = Layout(
    parameters=0x380,
    words={
        "ntid.x": 0x360,
        "ntid.y": 0x364,
        "ntid.z": 0x368,
        "nctaid.x": 0x370,
        "nctaid.y": 0x374,
        "nctaid.z": 0x378,
        "stack": 0x37C,
        "dynamic_shared": 0x20C,
        "grid_low": 0x140,
        "grid_high": 0x144,
        "nsm": 0x2D0,
        "reserved_shared": 0x16C,
        "explicit_cluster": 0x36C,
        "cluster_blocks": 0x22C,
    },
    addresses={
        "shared_window": 0x2F0,
        "local_window": 0x2F8,
        "parameters": 0x348,
        "constants": 0x120,
        "descriptor": 0x358,
    },
    shared_start=0x400,
)

LAYOUTS = {75: SM_80, 80: SM_80, 86: SM_80, 87: SM_80, 88: SM_80, 89: SM_80, 90: SM_90}
LAYOUTS |= dict.fromkeys((100, 103, 110, 120, 121), SM_100)
