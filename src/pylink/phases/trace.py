"""Part of merge: prints what -edbg says about the inputs."""

from __future__ import annotations

from pylink.diagnostics.stream import printable, write
from pylink.tables import file_sections

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.phases.results import Merged


def trace_inputs(merged: Merged) -> None:
    """Print a line per input, and one with the index of each Mercury section that is omitted."""
    objects = merged.objects
    for number, name in enumerate(objects.names):
        write(None, f"link input {printable(name)}\n")
        if merged.stand_ins:
            for index, section in enumerate(file_sections(objects, number)):
                if merged.stand_ins[section] >= 0:
                    write(None, f"skip mercury section {index}\n")
