"""`link` for one link, and `Linker` for inputs that are added one by one."""

from __future__ import annotations

import os
from io import StringIO

from pylink.api.following import ONE_FRAME, Following, logging_renderers
from pylink.api.inputs import Input, as_input, check_input, name_of, needs_no_check, to_linker_input
from pylink.api.result import LinkResult
from pylink.api.values import check_choices, check_keywords, check_list, without_defaults
from pylink.diagnostics import Sink
from pylink.diagnostics.errors import LinkError
from pylink.linker import run_link
from pylink.options.check import check
from pylink.options.filenames import expand_names
from pylink.options.model import Input as LinkInput
from pylink.options.plan import OutputPlan
from pylink.renderers.configuration import configure_sink, open_reports, source_files

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

# Options with files for diagnostics, which must not be opened while options are only checked.
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

    An input is a path, contents in memory (any object with the buffer protocol), a pair of a name
    for diagnostics and contents, or an `Input`. `options` and `keywords` are options of the link:
    each keyword is an option of `LinkOptions` and overrides that of `options`. With `output` the
    image is also written to that file, atomically. Diagnostics go to `log` in the format of the
    command line; without a `log` nothing is printed.

    `progress` is called with the name of each finished phase, the number of finished phases and
    the number of all; True shows a bar after a second, on a terminal or in a notebook. `cancel`,
    such as a `threading.Event`, is checked between phases. Neither changes the link.

    Raises LinkError if the link fails, with all diagnostics; LinkCancelled if `cancel` was set,
    before a file is written; TypeError for an unknown option and for an argument of a wrong type
    (for an input with its number).
    """
    check_list(inputs)
    with (
        ONE_FRAME,
        Linker(
            options, arch=arch, output=output, log=log, progress=progress, cancel=cancel, **keywords
        ) as linker,
    ):
        for source in inputs:
            linker._add(source, must_exist=False)
        return linker.complete()


class Linker:
    """A link whose inputs are added one by one; the arguments are those of `link`.

        with pylink.Linker(arch="sm_90a") as linker:
            linker.add("a.cubin")
            result = linker.complete()

    Errors are reported early: invalid options by the constructor, missing inputs by `add`, all
    others by `complete`. The end of a `with` block releases the inputs; `image` remains.

    Raises LinkError for invalid options, TypeError for an unknown option and for an argument of a
    wrong type.
    """

    __slots__ = ("_following", "_inputs", "_is_open", "_log", "_numbers", "_result", "_values")

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
        values = {**(options.given if options is not None else {}), **check_keywords(keywords)}
        self._values: dict[str, Value] = {**without_defaults(values), "arch": arch}
        if output is not None:
            self._values["output_file"] = os.fspath(output)
        expand_names(self._values)
        self._log = log
        self._following = (progress, cancel)
        Following(progress, cancel)  # checks the types; each link makes its own
        # Names of inputs in diagnostics, and the inputs; None: the file whose path is the name.
        self._inputs: list[tuple[str, Input | None]] = []
        self._numbers: dict[str, int] = {}  # by name: number of the first input with this name
        self._is_open = True
        self._result: LinkResult | None = None
        with ONE_FRAME:
            self._check(self._check_options)

    def add(self, source: InputLike) -> None:
        """Add an input of any form that `link` accepts.

        Raises LinkError for a file that does not exist and for an input that is not of the kind
        that its `Input` requires, TypeError for an object that is not an input, ValueError after
        `close`.
        """
        if not self._is_open:
            raise ValueError("the linker is closed")
        with ONE_FRAME:
            self._add(source, must_exist=True)

    def _add(self, source: InputLike, *, must_exist: bool) -> None:
        """Add an input; with `must_exist` a file must exist now."""
        number = len(self._inputs)
        if type(source) is str and not must_exist:  # fast path for the usual case
            self._inputs.append((self._unique_name(source, number), None))
            return
        added = as_input(source, number)
        name = self._unique_name(name_of(added, number, self._numbers), number)
        if not needs_no_check(added, must_exist=must_exist):
            self._check(lambda sink: check_input(added, name, sink))
        self._inputs.append((name, added))

    def _unique_name(self, name: str, number: int) -> str:
        """Return the name of input `number`.

        A RepeatedName if an earlier input has the same name.
        """
        if self._numbers.setdefault(name, number) == number:
            return name
        from pylink.diagnostics.record import RepeatedName

        return RepeatedName(name, number)

    def add_file(self, path: Path) -> None:
        """Add a file, which `complete` reads; raises the exceptions of `add`."""
        if not isinstance(path, (str, os.PathLike)):
            raise TypeError(f"input {len(self._inputs)}: no path, but {type(path).__name__}")
        with ONE_FRAME:
            self.add(Input(path))

    def add_data(self, data: Buffer, name: str | None = None) -> None:
        """Add contents, called `name` in diagnostics; they are copied unless they are bytes.

        Raises the exceptions of `add`.
        """
        if isinstance(data, (str, os.PathLike)):
            raise TypeError(f"input {len(self._inputs)}: contents, not the path {data!r}")
        with ONE_FRAME:
            self.add(Input(data, name))

    def complete(self) -> LinkResult:
        """Link the added inputs; LinkError if that fails, ValueError after `close`.

        More inputs can be added afterwards, and another call links all of them.
        """
        if not self._is_open:
            raise ValueError("the linker is closed")
        with ONE_FRAME:
            return self._complete(None)

    def _complete(self, shared: SharedInputs | None) -> LinkResult:
        """Link the added inputs; those that are `shared` with other links are not read again."""
        self._result = self._run(lambda sink, plan: self._link(sink, plan, shared))
        return self._result

    @property
    def image(self) -> bytes:
        """The linked file; ValueError before `complete`."""
        if self._result is None:
            raise ValueError("the link is not complete")
        return self._result.image

    def close(self) -> None:
        """Release the inputs; a second call does nothing."""
        self._is_open = False
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

    def _list_shareable_inputs(self) -> list[LinkInput]:
        """Return the inputs that other links can share: contents, and files named by their path."""
        return [
            LinkInput(name, None if source is None else source.data)
            for name, source in self._inputs
            if source is None or source.data is not None or name == source.path
        ]

    def _list_files(self) -> list[str]:
        """Return the paths of the inputs that are files."""
        paths = (name if source is None else source.path for name, source in self._inputs)
        return [path for path in paths if path is not None]

    def _read_renamed_files(self, contents: dict[str, bytes]) -> None:
        """Read the files whose name in diagnostics is not their path, unless `contents` has them.

        `contents`, by path, gets what is read. A file that cannot be read is left to the link.
        """
        for number, (name, source) in enumerate(self._inputs):
            if source is None or source.path is None or name == source.path:
                continue
            if source.path not in contents:
                try:
                    with open(source.path, "rb") as stream:
                        contents[source.path] = stream.read()
                except (OSError, ValueError):
                    continue
            read = Input(source.path, source.name, whole_archive=source.whole_archive)
            read.data = contents[source.path]
            self._inputs[number] = (name, read)

    def _link(self, sink: Sink, plan: OutputPlan, shared: SharedInputs | None) -> LinkResult:
        """Link the added inputs; LinkError if that fails."""
        self._check_options(sink)
        if not (self._inputs or self._values.get("allow_empty")):
            sink.fatal("no-input-files")
        inputs = [
            LinkInput(name) if source is None else to_linker_input(source, name, sink)
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
                on_phase_end=following.end_phase if following.is_wanted else None,
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
        """Report options whose values are wrong, or wrong together."""
        check_choices(self._values, sink)
        check(self._values, sink, has_inputs=True, needs_output=False, needs_nvvmpath=False)

    def _check(self, work: Callable[[Sink], None]) -> None:
        """Do `work`, which checks something, with a silent sink.

        If that fails, do it again with a sink that reports, and raise LinkError.
        """
        silent_sink = Sink()
        try:
            values = {name: value for name, value in self._values.items() if name not in _FILES}
            configure_sink(silent_sink, values, inputs=self._numbers, stream=StringIO())
            work(silent_sink)
        except LinkError:
            self._run(lambda sink, plan: work(sink))
            raise

    def _run(self, work: Callable[[Sink, OutputPlan], T]) -> T:
        """Return the result of `work`, called with a sink and the plan of output files.

        The options configure both. LinkError if `work` fails, or if a report cannot be written.
        """
        sink = Sink()
        try:
            configure_sink(sink, self._values, inputs=self._numbers, stream=self._log or StringIO())
            if self._log is None:
                del sink.renderers[0]  # the one that would print to `log`
            sink.renderers += logging_renderers()
            plan = OutputPlan(self._values, self._list_files(), sink)
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
