"""One call for a link, and an object for callers who feed a linker piece by piece."""

from __future__ import annotations

import os
from io import StringIO

from pylink.api.following import ONE_FRAME, Following, logging_renderers
from pylink.api.inputs import Input, as_input, check_input, is_plain, name_of, to_link
from pylink.api.result import LinkResult
from pylink.api.values import check_choices, checked, given
from pylink.diagnostics import Sink
from pylink.diagnostics.errors import LinkError
from pylink.linker import run_link
from pylink.options.check import check
from pylink.options.filenames import expand_names
from pylink.options.model import Input as LinkInput
from pylink.options.plan import Plan
from pylink.renderers.configuration import obey, open_reports, source_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import TracebackType
    from typing import TextIO, TypeVar

    from typing_extensions import Buffer, Self, Unpack

    from pylink.api.following import Cancel, ProgressCall
    from pylink.api.inputs import InputLike, Path
    from pylink.api.keywords import LinkKeywords
    from pylink.api.options import LinkOptions
    from pylink.options.table import Value
    from pylink.phases.sharing import SharedInputs

    T = TypeVar("T")

# Options that open files, which no check of the options does.
_FILES = ("diag_log", "sarif_output")


def link(
    inputs: Iterable[InputLike],
    options: LinkOptions | None = None,
    *,
    arch: str,
    output: Path | None = None,
    log: TextIO | None = None,
    progress: ProgressCall | bool | None = None,
    cancel: Cancel | None = None,
    **keywords: Unpack[LinkKeywords],
) -> LinkResult:
    """Link `inputs` for `arch`, such as `sm_90a`.

    An input is a path, contents in memory (anything with the buffer protocol), a pair of a name for
    diagnostics and contents, or an `Input`. `options` and `keywords` say how to link: each keyword
    is an option of `LinkOptions`, and counts instead of what `options` has. The image is also
    written to `output` when that is given, atomically. Diagnostics go to `log` in the
    command line's form when there is one; nothing is printed otherwise.

    `progress` is called with the name of each phase that ended, how many phases are done and how
    many there are; True shows a bar after a second, on a terminal or in a notebook. `cancel`, such
    as a `threading.Event`, is asked between phases whether to give up. Neither changes the link.

    Raises LinkError when the link cannot be done, with all diagnostics; LinkCancelled when it was
    given up, without a file written; TypeError for an argument of a wrong type, which names the
    input by its number, and for an unknown option.
    """
    if isinstance(inputs, (str, bytes, os.PathLike)):
        raise TypeError("inputs is a list, also of one input")
    with (
        ONE_FRAME,
        Linker(
            options,
            arch=arch,
            output=output,
            log=log,
            progress=progress,
            cancel=cancel,
            **keywords,
        ) as linker,
    ):
        for source in inputs:
            linker._take(source, looks=False)
        return linker.complete()


class Linker:
    """A link that is fed piece by piece; the arguments are those of `link`.

        with pylink.Linker(arch="sm_90a") as linker:
            linker.add("a.cubin")
            result = linker.complete()

    Errors are reported when they can be known: options that cannot be linked with by the
    constructor, inputs that are not there by `add`, all else by `complete`. At its end a `with`
    block lets the inputs go; then `image` remains.

    Raises LinkError for options that no link can be done with, TypeError for an unknown option and
    for an argument of a wrong type.
    """

    __slots__ = ("_following", "_inputs", "_log", "_numbers", "_open", "_result", "_values")

    def __init__(
        self,
        options: LinkOptions | None = None,
        *,
        arch: str,
        output: Path | None = None,
        log: TextIO | None = None,
        progress: ProgressCall | bool | None = None,
        cancel: Cancel | None = None,
        **keywords: Unpack[LinkKeywords],
    ) -> None:
        if not isinstance(arch, str):
            raise TypeError(f"arch is a name such as 'sm_90a', not {arch!r}")
        values = {**(options.given if options is not None else {}), **checked(keywords)}
        self._values: dict[str, Value] = {**given(values), "arch": arch}
        if output is not None:
            self._values["output_file"] = os.fspath(output)
        expand_names(self._values)
        self._log = log
        self._following = (progress, cancel)
        Following(progress, cancel)
        # Each with the name that diagnostics use; None is the path of that name, as it stands.
        self._inputs: list[tuple[str, Input | None]] = []
        self._numbers: dict[str, int] = {}  # of inputs, by these names
        self._open = True
        self._result: LinkResult | None = None
        with ONE_FRAME:
            self._check(self._check_options)

    def add(self, source: InputLike) -> None:
        """Add an input of any form that `link` takes.

        Raises LinkError for a file that is not there and for an input that is not of the kind that
        an `Input` names, TypeError for what is not an input, ValueError after the end.
        """
        if not self._open:
            raise ValueError("the linker is closed")
        with ONE_FRAME:
            self._take(source, looks=True)

    def _take(self, source: InputLike, *, looks: bool) -> None:
        """Add an input; whether a file is there is asked with `looks`."""
        number = len(self._inputs)
        if type(source) is str and not looks:  # the usual case, and the fastest
            self._inputs.append((self._named(source, number), None))
            return
        added = as_input(source, number)
        name = self._named(name_of(added, number, self._numbers), number)
        if not is_plain(added, looks=looks):
            self._check(lambda sink: check_input(added, name, sink))
        self._inputs.append((name, added))

    def _named(self, name: str, number: int) -> str:
        """The name of input `number`, which says so where an earlier one has the name, too."""
        if self._numbers.setdefault(name, number) == number:
            return name
        from pylink.diagnostics.record import RepeatedName

        return RepeatedName(name, number)

    def add_file(self, path: Path) -> None:
        """Add a file, which `complete` reads. Raises what `add` does."""
        with ONE_FRAME:
            self.add(Input(path))

    def add_data(self, data: Buffer, name: str | None = None) -> None:
        """Add contents, called `name` in diagnostics; they are copied unless they are bytes.

        Raises what `add` does.
        """
        if isinstance(data, (str, os.PathLike)):
            raise TypeError(f"input {len(self._inputs)}: contents, not the path {data!r}")
        with ONE_FRAME:
            self.add(Input(data, name))

    def complete(self) -> LinkResult:
        """Link what was added. Raises LinkError when that cannot be done, ValueError after the end.

        More inputs may be added and linked with these by another call.
        """
        if not self._open:
            raise ValueError("the linker is closed")
        with ONE_FRAME:
            return self._complete(None)

    def _complete(self, shared: SharedInputs | None) -> LinkResult:
        """Link what was added; inputs that are `shared` with other links are not read again."""
        self._result = self._run(lambda sink, plan: self._link(sink, plan, shared))
        return self._result

    @property
    def image(self) -> bytes:
        """The linked file; ValueError before `complete`."""
        if self._result is None:
            raise ValueError("the link is not complete")
        return self._result.image

    def close(self) -> None:
        """Let the inputs go; a second call does nothing."""
        self._open = False
        self._inputs.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _shareable(self) -> list[LinkInput]:
        """The inputs that another link can have in common with this one: what goes by its path."""
        return [
            LinkInput(name, None if source is None else source.data)
            for name, source in self._inputs
            if source is None or source.data is not None or name == source.path
        ]

    def _link(self, sink: Sink, plan: Plan, shared: SharedInputs | None) -> LinkResult:
        self._check_options(sink)
        if not (self._inputs or self._values.get("allow_empty")):
            sink.fatal("no-input-files")
        inputs = [
            LinkInput(name) if source is None else to_link(source, name, sink)
            for name, source in self._inputs
        ]
        following = Following(*self._following)
        following.check()
        try:
            linked = run_link(
                self._values,
                inputs,
                plan,
                sink,
                shared=shared,
                between=following.end_phase if following.is_wanted else None,
            )
        finally:
            following.close()
        return LinkResult(
            linked.image,
            sink.diagnostics,
            linked.timings,
            linked.profile,
            arch=str(self._values["arch"]),
            inputs=[
                (source.name, None if source.data is None else len(source.data))
                for source in inputs
            ],
        )

    def _check_options(self, sink: Sink) -> None:
        check_choices(self._values, sink)
        check(self._values, sink, has_inputs=True, needs_output=False, needs_nvvmpath=False)

    def _check(self, work: Callable[[Sink], None]) -> None:
        """Do `work` with nobody listening; only where it fails, with those who want to know."""
        unheard = Sink()
        try:
            quiet = {name: value for name, value in self._values.items() if name not in _FILES}
            obey(unheard, quiet, inputs=self._numbers, stream=StringIO())
            work(unheard)
        except LinkError:
            self._run(lambda sink, plan: work(sink))
            raise

    def _run(self, work: Callable[[Sink, Plan], T]) -> T:
        """What `work` gives; diagnostics go where the options send them."""
        sink = Sink()
        try:
            obey(sink, self._values, inputs=self._numbers, stream=self._log or StringIO())
            if self._log is None:
                del sink.renderers[0]
            sink.renderers += logging_renderers()
            files = (name for name, source in self._inputs if source is None or source.data is None)
            plan = Plan(self._values, files, sink)
            open_reports(sink, self._values)
            result = work(sink, plan)
        except LinkError as error:
            error.sources = source_files(self._values, self._numbers)
            raise
        finally:
            for record in sink.diagnostics:
                record.input_numbers = self._numbers
            sink.close()
        if sink.errors:  # a report that could not be written
            raise LinkError(sink.diagnostics)
        return result
