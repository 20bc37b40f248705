"""Diagnostics of whole programs (`nvcc -ewp`), which were compiled without other files' code.

docs/format-notes/whole-programs.md has the experiments. Loaded only if a link has such an input.
"""

from __future__ import annotations

from pylink.diagnostics.record import note
from pylink.facts.rownumbers import FileFlag
from pylink.inputs.kinds import SYSTEM_LIBRARY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from pylink._native.tables import Clashes
    from pylink.diagnostics import Sink
    from pylink.facts.releases import Release
    from pylink.phases.results import Objects


def refuse_old(file: str, toolkit: str, release: Release, sink: Sink) -> NoReturn:
    """Refuse an input of an older toolkit that is a whole program or comes after one."""
    hint = note("made-by", file=file, compiler=toolkit, release=release.name)
    sink.fatal("whole-program-old", hints=[hint])


def warn_of_others(objects: Objects, clashes: Clashes, sink: Sink) -> None:
    """Warn of inputs beside whole programs, except for whole programs and the device runtime.

    nvlink warns of each input when it merges it, and stops at the first input with a clash or, with
    -Werror, at the first warning.
    """
    last = len(objects.files) - 1
    if clashes:
        last = objects.symbols[clashes[0].symbol].file
    for number, flags in enumerate(objects.files.column("flags")[: last + 1]):
        name = objects.names[number]
        if flags & FileFlag.WHOLE_PROGRAM or SYSTEM_LIBRARY in name:
            continue
        sink.report("whole-program-mixed", file=name)
        if sink.errors:
            sink.fatal("merge-failed")
