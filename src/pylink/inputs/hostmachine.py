"""The machine of the host that a program is linked for."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.options.model import Options

# ELF machine of the objects that a host links, by -cpu-arch and by what the system calls itself.
MACHINES = {"X86": 3, "ARMv7": 40, "PPC64LE": 21, "X86_64": 62, "AARCH64": 183}
_X86_64 = 62
SYSTEMS = {"aarch64": 183, "ppc64le": 21}


def host_machine(options: Options) -> int:
    """The ELF machine that objects of libraries have to be for."""
    return MACHINES.get(options.cpu_arch or "", 0) or SYSTEMS.get(os.uname().machine, _X86_64)
