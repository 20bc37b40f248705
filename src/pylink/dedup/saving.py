"""Computes the bytes that folding saves in the output of a link, from two real layouts.

The sum of folded payloads would be wrong: bytes of plain sections stay, alignment and relocations
count, and a link only omits the sections of `pylink.phases.fold`. So merge and layout run with and
without folding, the latter like --merc-dedup=off, and the sizes of the two files are compared. That
takes about half the time of a link, so a plain link does not do it.
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


class ErrorCollector(Sink):
    """A sink that shows nothing and keeps the first error; undefined symbols are not errors."""

    __slots__ = ("first",)

    def __init__(self) -> None:
        super().__init__()
        self.first: Diagnostic | None = None

    @property
    def failing(self) -> bool:
        """Whether an error was reported."""
        return self.first is not None

    def is_enabled(self, kind: str) -> bool:
        # The hints of `undefined-reference` search all inputs, which takes too long here.
        return kind != "undefined-reference"

    def dispatch(self, diagnostic: Diagnostic) -> Diagnostic | None:
        """Keep the first error; a catastrophe raises LinkError, as in every sink."""
        if diagnostic.level >= DISCRETIONARY:
            self.first = self.first or diagnostic
        return super().dispatch(diagnostic) if diagnostic.level >= CATASTROPHE else None


def saved_bytes(objects: Objects, sink: ErrorCollector | None = None) -> int | None:
    """Return the bytes by which folding shortens the output; None if these inputs do not link.

    Errors are reported to `sink`.
    """
    sink = sink or ErrorCollector()
    sizes = [_output_size(objects, sink, keeps_copies=keeps) for keeps in (True, False)]
    return None if sizes[0] is None or sizes[1] is None else sizes[0] - sizes[1]


def saved_by_cubins(cubins: Iterable[tuple[str, bytes]], arch: str) -> int | None:
    """Return the bytes that folding saves in a link of these cubins (name, contents) for `arch`.

    None if they do not link.
    """
    from pylink.options.model import Input  # needed only here

    objects = read_inputs([Input(name, data) for name, data in cubins], arch, ErrorCollector())
    return None if objects is None else saved_bytes(objects)


def read_inputs(inputs: list[Input], arch: str, sink: ErrorCollector) -> Objects | None:
    """Load and parse inputs of a link for `arch`; None if that fails."""
    from pylink.options.model import Options  # needed only here
    from pylink.options.plan import OutputPlan
    from pylink.phases.load import load
    from pylink.phases.read import read
    from pylink.timing import CsvTiming

    try:
        plan = OutputPlan({}, (), sink)
        job = init(sink, Options({"arch": arch}), inputs, plan, Steps())
        objects = read(sink, load(sink, job, CsvTiming(None)))
    except LinkError:
        return None
    return None if sink.failing else objects


def _output_size(objects: Objects, sink: ErrorCollector, *, keeps_copies: bool) -> int | None:
    """Return the size of the output in bytes; None after an error.

    With `keeps_copies` no Mercury section is folded.
    """
    job: Job = copy.copy(objects.job)
    job.steps = Steps()
    job.traces_folds = False
    job.keeps_copies = keeps_copies
    copied = objects.replace(job=job)
    try:
        merged = merge(sink, copied)
        return None if merged is None or sink.failing else layout(sink, merged).size
    except LinkError:
        return None
