"""The Python interface: one call for a link, an object for callers used to nvJitLink."""

from __future__ import annotations

import os
from io import StringIO

from pylink import pipeline
from pylink.command.optioncheck import check
from pylink.command.optiontable import BY_ATTRIBUTE, FLAG, LIST, NUMBER, OPTIONS, SIZE, TRUTH
from pylink.diagnostics import Sink
from pylink.diagnostics.configure import obey, open_reports
from pylink.errors import LinkError
from pylink.inputs.libraries import find_libraries
from pylink.options import Input, Options
from pylink.outputs.plan import Plan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import TextIO

    from pylink.command.optiontable import Option, Value
    from pylink.diagnostics import Diagnostic
    from pylink.profile.model import Profile

    Buffer = bytes | bytearray | memoryview
    Path = str | os.PathLike[str]
    InputLike = Path | Buffer | tuple[str, Buffer] | Input

# Options of the command line that mean nothing in a call.
NOT_IN_A_CALL = (
    "help",
    "version",
    "options_file",
    "gen_host_linker_script",
    "list_sections",
    "list_sets",
    "list_rules",
    "output_file",
    "arch",
    "no_whole_archive",
)

# A path that stands for none: the profile is made and not written.
NO_FILE = ""


class LinkResult:
    """What a link made.

    `image` is the linked file, also when it was written to a path. `diagnostics` are the records
    of a link that worked, warnings at most; one whose place nobody looked at keeps the inputs in
    memory, which `del` of the result lets go. `timings` maps the name of each phase that ran to its
    milliseconds. `profile` is what the link cost, None unless it was asked for.
    """

    __slots__ = ("diagnostics", "image", "profile", "timings")

    def __init__(
        self,
        image: bytes,
        diagnostics: tuple[Diagnostic, ...],
        timings: dict[str, float],
        profile: Profile | None = None,
    ) -> None:
        self.image = image
        self.diagnostics = diagnostics
        self.timings = timings
        self.profile = profile

    def __repr__(self) -> str:
        return f"<LinkResult {len(self.image)} bytes>"


def link(
    inputs: Iterable[InputLike],
    *,
    arch: str,
    output: Path | None = None,
    log: TextIO | None = None,
    **options: object,
) -> LinkResult:
    """Link `inputs` for `arch`, such as `sm_90a`; LinkError when that cannot be done.

    An input is a path, the bytes of such a file, or a pair of a name for diagnostics and the bytes.
    The result is written to `output` when that is given. `options` are the long names of the
    command line with underscores: a flag takes a bool, a list a string or several; `profile=True`
    gives the result a profile without writing a file. Diagnostics go to `log` in the command line's
    form, when there is one, and nowhere otherwise.
    """
    if isinstance(inputs, (str, bytes, os.PathLike)):
        raise TypeError("inputs is a list, also of one input")
    linker = Linker(arch=arch, output=output, log=log, **options)
    for one in inputs:
        linker.add(one)
    return linker.complete()


class Linker:
    """One link, fed piece by piece; the arguments are those of `link`."""

    __slots__ = ("_inputs", "_log", "_result", "_values")

    def __init__(
        self,
        *,
        arch: str,
        output: Path | None = None,
        log: TextIO | None = None,
        **options: object,
    ) -> None:
        self._values = _checked(options)
        self._values["arch"] = arch
        if output is not None:
            self._values["output_file"] = os.fspath(output)
        self._log = log
        self._inputs: list[Input] = []
        self._result: LinkResult | None = None

    def add(self, one: InputLike) -> None:
        """Add an input of any form that `link` takes."""
        if isinstance(one, Input):
            self._inputs.append(one)
        elif isinstance(one, tuple):
            name, data = one
            self.add_data(data, name)
        elif isinstance(one, (str, os.PathLike)):
            self.add_file(one)
        else:
            self.add_data(one, f"<input {len(self._inputs)}>")

    def add_file(self, path: Path) -> None:
        """Add a file, which `complete` reads."""
        self._inputs.append(Input(os.fspath(path)))

    def add_data(self, data: Buffer, name: str) -> None:
        """Add the bytes of a file, called `name` in diagnostics; they are copied unless bytes."""
        # bytes() of a number would be that many zeros.
        self._inputs.append(
            Input(name, data if isinstance(data, bytes) else bytes(memoryview(data)))
        )

    def complete(self) -> LinkResult:
        """Link what was added; LinkError when that cannot be done."""
        sink = Sink()
        try:
            names = [one.name for one in self._inputs]
            obey(sink, self._values, inputs=names, stream=self._log or StringIO())
            if self._log is None:
                del sink.renderers[0]
            _check_choices(self._values, sink)
            files = [one.name for one in self._inputs if one.data is None]
            plan = Plan(self._values, files, sink)
            open_reports(sink, self._values)
            check(self._values, sink, has_inputs=bool(self._inputs), needs_output=False)
            self._result = run_link(self._values, self._inputs, plan, sink)
        finally:
            sink.close()
        if sink.errors:  # a report that could not be written
            raise LinkError(sink.diagnostics)
        return self._result

    @property
    def image(self) -> bytes:
        """The linked file; ValueError before `complete`."""
        if self._result is None:
            raise ValueError("the link is not complete")
        return self._result.image


def run_link(
    values: Mapping[str, Value],
    inputs: list[Input],
    plan: Plan,
    sink: Sink,
    whole_libraries: Sequence[bool] | None = None,
    *,
    compiles: bool = True,
) -> LinkResult:
    """Link with checked options, reporting to `sink`; LinkError after any error.

    `plan` has the files that will be written. `whole_libraries` says for each library whether all
    members are asked for, None what `whole_archive` says for all. Without `compiles`, PTX and
    LTO-IR are an error.
    """
    options = Options(values, [one.name for one in inputs], compiles=compiles)
    if whole_libraries is None:
        whole_libraries = [options.whole_archive] * len(options.library)
    libraries = find_libraries(options, whole_libraries, plan, sink)
    linked = pipeline.link(options, [*inputs, *libraries], plan, sink)
    if sink.errors:
        raise LinkError(sink.diagnostics)
    return LinkResult(linked.image, tuple(sink.diagnostics), linked.timings, linked.profile)


def _checked(options: Mapping[str, object]) -> dict[str, Value]:
    """Keyword arguments as option values; TypeError for a name or type that is wrong."""
    values: dict[str, Value] = {}
    for name, given in options.items():
        option = BY_ATTRIBUTE.get(name)
        if option is None or name in NOT_IN_A_CALL:
            raise TypeError(f"unknown option {name!r}")
        value = None if given is None else _value(option, given)
        if value is not None and value != () and (value or option.takes != FLAG):
            values[name] = value
    return values


def _check_choices(values: Mapping[str, Value], sink: Sink) -> None:
    for option in OPTIONS:
        if option.choices and option.attribute in values:
            value = values[option.attribute]
            if value not in option.choices:
                sink.fatal("undefined-value", value=str(value), option=option.long)


def _value(option: Option, given: object) -> Value:
    if option.takes in (FLAG, TRUTH):
        if isinstance(given, bool):
            return given
    elif option.takes in (NUMBER, SIZE):
        if isinstance(given, int) and not isinstance(given, bool):
            return given
    elif option.takes == LIST:
        items = (given,) if isinstance(given, str) else given
        if isinstance(items, (list, tuple)) and all(isinstance(item, str) for item in items):
            return tuple(items)
    elif isinstance(given, (str, os.PathLike)):
        return os.fspath(given)
    elif option.attribute == "profile" and isinstance(given, bool):
        return NO_FILE if given else None
    raise TypeError(f"option {option.attribute!r} does not take {given!r}")
