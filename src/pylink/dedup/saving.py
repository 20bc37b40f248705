"""What folding takes off the output of a link, in bytes: the difference of two real layouts.

Payloads that fold are not it: the plain sections' bytes stay, alignment and relocations count, and
a link omits the sections of `pylink.phases.fold` alone. So merge and layout run once more, as
with --merc-dedup=off, and the sizes of the two files are compared. That costs about half a link;
only what looks at links asks.
"""

from __future__ import annotations

import copy

from pylink.diagnostics import Sink
from pylink.diagnostics.errors import LinkError
from pylink.diagnostics.severity import CATASTROPHE, DISCRETIONARY
from pylink.observer import Steps
from pylink.phases.init import Job, init
from pylink.phases.layout import layout
from pylink.phases.merge import merge

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from pylink.diagnostics import Diagnostic
    from pylink.options.model import Input
    from pylink.phases.results import Objects


class Lenient(Sink):
    """Hears what phases report and shows nothing; undefined symbols are not errors to it.

    `first` is the first other error.
    """

    __slots__ = ("first",)

    def __init__(self) -> None:
        super().__init__()
        self.first: Diagnostic | None = None

    @property
    def failing(self) -> bool:
        return self.first is not None

    def hears(self, kind: str) -> bool:
        # Files that might define them are looked for in every input, which would be the cost of a
        # part.
        return kind != "undefined-reference"

    def dispatch(self, diagnostic: Diagnostic) -> Diagnostic | None:
        if diagnostic.level >= DISCRETIONARY:
            self.first = self.first or diagnostic
        return super().dispatch(diagnostic) if diagnostic.level >= CATASTROPHE else None


def saved_bytes(objects: Objects, sink: Lenient | None = None) -> int | None:
    """How much shorter the output of these inputs is with folding; None when they do not link.

    `sink` hears why.
    """
    sink = sink or Lenient()
    sizes = [_output_size(objects, sink, keeps_copies=keeps) for keeps in (True, False)]
    return None if sizes[0] is None or sizes[1] is None else sizes[0] - sizes[1]


def saved_by_cubins(cubins: Iterable[tuple[str, bytes]], arch: str) -> int | None:
    """The same of cubins by name, linked for `arch`."""
    from pylink.options.model import Input  # a link has no need of this here

    objects = read_inputs([Input(name, data) for name, data in cubins], arch, Lenient())
    return None if objects is None else saved_bytes(objects)


def read_inputs(inputs: list[Input], arch: str, sink: Lenient) -> Objects | None:
    """What a link of these inputs for `arch` has to merge; None when they cannot be read."""
    from pylink.options.model import Options  # a link needs none of these
    from pylink.options.plan import Plan
    from pylink.phases.load import load
    from pylink.phases.read import read
    from pylink.timing import CsvTiming

    try:
        plan = Plan({}, (), sink)
        job = init(sink, Options({"arch": arch}), inputs, plan, Steps())
        objects = read(sink, load(sink, job, CsvTiming(None)))
    except LinkError:
        return None
    return None if sink.failing else objects


def _output_size(objects: Objects, sink: Lenient, *, keeps_copies: bool) -> int | None:
    """Bytes of the output; None after an error."""
    job: Job = copy.copy(objects.job)
    job.steps = Steps()
    job.traces_folds = False
    job.keeps_copies = keeps_copies
    again = objects.replaced(job=job)
    try:
        merged = merge(sink, again)
        return None if merged is None or sink.failing else layout(sink, merged).size
    except LinkError:
        return None
