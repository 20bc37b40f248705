"""What an executable tells the driver of a kernel, against what its code did in a launch."""

from __future__ import annotations

from emulator.attributes import UNKNOWN_STACK
from emulator.grid import Grid


def findings(grid: Grid) -> list[str]:
    """What the code used and the file does not say, for a launch that has run to its end.

    Accesses beyond the stack and shared memory that the file asks for end the launch themselves.
    """
    found = []
    info, usage = grid.info, grid.usage
    if info.registers is None or usage.registers > info.registers:
        found.append(f"{usage.registers} registers used, EIATTR_REGCOUNT is {info.registers}")
    said = info.min_stack if info.min_stack is not None else info.frame_size
    if said != UNKNOWN_STACK and usage.stack > (said or 0):
        found.append(f"{usage.stack} bytes of stack used, EIATTR_MIN_STACK_SIZE is {said}")
    if usage.barriers > (info.barriers or 0):
        found.append(f"{usage.barriers} barriers used, EIATTR_NUM_BARRIERS is {info.barriers}")
    if info.parameter_offset != grid.program.loaded.layout.parameters:
        found.append(f"parameters are at {info.parameter_offset} by EIATTR_PARAM_CBANK")
    if (info.parameter_room or 0) != (info.parameter_size or 0):
        found.append(f"EIATTR_PARAM_CBANK has room for {info.parameter_room} bytes of parameters")
    for offset in sorted(usage.parameters):
        if not any(
            parameter.offset - 3 <= offset < parameter.offset + parameter.size
            for parameter in info.parameters
        ):
            found.append(f"parameter bytes at {offset} used, no EIATTR_KPARAM_INFO has them")
    ends = [parameter.offset + parameter.size for parameter in info.parameters]
    if info.parameter_size != max(ends, default=0):
        found.append(f"EIATTR_CBANK_PARAM_SIZE is {info.parameter_size}, descriptors end at {ends}")
    end = grid.program.loaded.layout.parameters + (info.parameter_size or 0)
    for bank in grid.program.loaded.banks:
        if bank.number == 0 and bank.kernel == grid.kernel and bank.size != end:
            found.append(f"constant bank 0 has {bank.size} bytes, parameters end at {end}")
    return found
