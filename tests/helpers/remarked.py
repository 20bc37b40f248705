"""Links in this process that return the remarks of their passes."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping, Sequence
from importlib import import_module
from unittest import mock

from helpers.cubin_builder import Cubin

from pylink import pipeline
from pylink.diagnostics import Sink
from pylink.diagnostics.errors import LinkError
from pylink.observer import Observer
from pylink.options.model import Input, Options
from pylink.options.plan import OutputPlan
from pylink.options.table import Value
from pylink.remarks import Remark, Remarks
from pylink.remarks.passes import PASSES
from pylink.remarks.record import TAGS, parts_of_place

BUILT_FOR = "80"  # the architecture of cubins from the builder


class Listed:
    """A writer that keeps all remarks in a list."""

    def __init__(self) -> None:
        self.path = ""
        self.remarks: list[Remark] = []

    def write(self, remarks: list[Remark]) -> None:
        self.remarks += remarks

    def close(self) -> None:
        pass

    def discard(self) -> None:
        pass


class Passes(Observer):
    """Runs the passes that `only` names (default: all), and keeps the results of the phases."""

    def __init__(self, remarks: Remarks, only: Sequence[str]) -> None:
        self.remarks = remarks
        self.only = only
        self.results: dict[str, object] = {}

    @property
    def records_folds(self) -> bool:
        return not self.only or "merc-dedup" in self.only

    def phase_ended(self, tag: str, result: object) -> None:
        self.results[tag] = result
        for name, (phase, module) in PASSES.items():
            if phase == tag and (not self.only or name in self.only):
                import_module(f"pylink.remarks.passes.{module}").emit(result, self.remarks)


def remarks_of(
    cubins: Mapping[str, bytes],
    arch: str,
    *only: str,
    options: Mapping[str, Value] | None = None,
    why_live: re.Pattern[str] | None = None,
) -> list[Remark]:
    """Return the remarks of a link, in order, also if the link fails.

    `only` names the passes that run (default: all). `why_live` is that of `Remarks`.
    """
    listed = Listed()
    sink = Sink()
    remarks = Remarks(sink, listed, hotness=True, why_live=why_live)
    values: dict[str, Value] = {"arch": f"sm_{arch}", **(options or {})}
    inputs = [Input(name, data) for name, data in cubins.items()]
    watching = Passes(remarks, only)
    with (
        mock.patch.object(pipeline, "make_observers", return_value=[watching]),
        contextlib.suppress(LinkError),
    ):
        pipeline.link(Options(values, [*cubins]), inputs, OutputPlan(values, (), sink), sink)
    remarks.close()
    return listed.remarks


def line(remark: Remark) -> str:
    """Return a remark in one line, without pass, section and the places of its arguments."""
    file, _ = parts_of_place(remark.file or "")
    return (
        f"{TAGS[remark.kind]} {remark.name} {remark.function} "
        f"{file}:{remark.line}:{remark.column} {remark.hotness} | {remark.message}"
    )


def lines(cubins: Mapping[str, Cubin], only: str, **options: Value) -> list[str]:
    """Return the remarks of one pass on cubins made in code."""
    images = {name: cubin.build() for name, cubin in cubins.items()}
    return [line(remark) for remark in remarks_of(images, BUILT_FOR, only, options=options)]
