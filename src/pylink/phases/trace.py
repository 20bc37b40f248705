"""Part of merge: what -edbg says of the inputs as they are linked."""

from __future__ import annotations

from struct import unpack_from

from pylink.diagnostics.stream import printable, write
from pylink.tables import FILE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.phases.read import Objects


def trace_inputs(objects: Objects, stand_ins: bytes) -> None:
    """A line per input, and one per Mercury section that is left out of it, by its index.

    `stand_ins` has the section that stands for each one, as `merge` takes it.
    """
    for row, name in zip(FILE.iter_unpack(objects.files), objects.names, strict=True):
        write(None, f"link input {printable(name)}\n")
        if stand_ins:
            first, count = row[2], row[3]
            for index, other in enumerate(unpack_from(f"<{count}i", stand_ins, 4 * first)):
                if other >= 0:
                    write(None, f"skip mercury section {index}\n")
