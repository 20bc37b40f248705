"""Names the library, and the option to link it, for undefined names of known libraries.

Public headers of CUDA, NVSHMEM and NCCL declare these names for device code.
"""

from __future__ import annotations

import re

from pylink.diagnostics.record import note

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.diagnostics.record import Diagnostic

# Each library: a pattern of the start of its names, its title, and the option that links it.
LIBRARIES = tuple(
    (re.compile(pattern), library, option)
    for pattern, library, option in (
        (
            r"__cudaCDP2|cuda(?:Malloc|Free|Memcpy|Memset|Stream|Event|Launch|Func|Device|Graph"
            r"|GetDevice|GetLastError|PeekAtLastError|GetErrorString|GetErrorName"
            r"|GetParameterBuffer|Occupancy|RuntimeGetVersion|CG)",
            "the device runtime (libcudadevrt.a)",
            "-lcudadevrt",
        ),
        (r"(?:_Z\d*)?nvshmem", "NVSHMEM (libnvshmem_device.a)", "-lnvshmem_device"),
        (r"_ZN4nccl|_Z\d+nccl|nccl", "NCCL (libnccl_static.a)", "-lnccl_static"),
    )
)
# Names in libdevice, which the compiler links: no option of the device link can.
LIBDEVICE = re.compile(r"__nv_[a-z0-9_]+$")


def find_library(symbol: str) -> list[Diagnostic]:
    """Return a list of one note, on the library that defines names like this; empty if unknown."""
    if LIBDEVICE.match(symbol):
        return [note("in-libdevice", symbol=symbol)]
    for pattern, library, option in LIBRARIES:
        if pattern.match(symbol):
            return [note("in-library", symbol=symbol, library=library, option=option)]
    return []
