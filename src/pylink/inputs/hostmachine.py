"""The host machine that a program is linked for."""

from __future__ import annotations

import os

from pylink.facts.elf import EM_X86_64, MACHINE_OF_CPU_ARCH, MACHINE_OF_UNAME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.diagnostics import Sink
    from pylink.inputs.contents import DeviceContents
    from pylink.options.model import Options
    from pylink.phases.init import Job


def host_machine(options: Options) -> int:
    """Return the ELF machine that host objects in libraries must have."""
    return MACHINE_OF_CPU_ARCH.get(options.cpu_arch or "", 0) or this_machine()


def this_machine() -> int:
    """Return the ELF machine of this system."""
    return MACHINE_OF_UNAME.get(os.uname().machine, EM_X86_64)


def warn_of_machines(job: Job, contents: DeviceContents, sink: Sink) -> None:
    """Warn of objects for another host than -cpu-arch says.

    Without -cpu-arch, objects for another host than this system are reported, but only if others
    are for this system. Their device code is linked, since it does not depend on the host.
    The host linker will not link them.
    """
    machine = host_machine(job.options)
    sources = contents.sources
    if {*contents.machines()} <= {0, machine}:
        return
    machines = {
        number: other
        for number, other in enumerate(contents.machines())
        if other and not sources.is_overlooked(number)  # these have a warning of their own
    }
    mismatched = [number for number, other in machines.items() if other != machine]
    is_mixed = len(mismatched) < len(machines)
    if mismatched and (is_mixed or job.options.cpu_arch is not None):
        from pylink.inputs.filehints import machine_name

        sink.report(
            "host-differs",
            file=sources.names[mismatched[0]],
            more=f" and {len(mismatched) - 1} more" if len(mismatched) > 1 else "",
            machine=machine_name(machines[mismatched[0]]),
            host=machine_name(machine),
        )
