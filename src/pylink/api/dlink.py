"""The device-link step as a call."""

from __future__ import annotations

import os
from threading import Lock

from pylink.api.following import ONE_FRAME, Following, logging_renderers
from pylink.api.inputs import as_input, name_of, to_linker_input
from pylink.api.values import check_keywords, check_list, without_defaults
from pylink.devicelink.compression import MODES
from pylink.devicelink.hostobject import MACHINES
from pylink.devicelink.links import LinkCallbacks
from pylink.devicelink.request import CUBIN, DEFAULT_OUTPUTS, UNIT, Request
from pylink.devicelink.step import make_step, write_step
from pylink.devicelink.toolkit import find_toolkit
from pylink.diagnostics import NvlinkRenderer, Sink
from pylink.diagnostics.errors import Diagnostics
from pylink.facts.target import NAMES
from pylink.options.table import BY_ATTRIBUTE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Literal, TextIO

    from typing_extensions import Unpack

    from pylink.api.following import Cancel, ProgressCall
    from pylink.api.inputs import InputLike, Path
    from pylink.api.keywords import LinkKeywords
    from pylink.diagnostics import Diagnostic
    from pylink.options.model import Input as LinkInput
    from pylink.options.table import Value

# Options of links that the device-link step sets itself.
STEP_OPTIONS = ("cpu_arch", "machine", "register_link_binaries", "relocatable_link", "report_arch")


class DlinkResult:
    """The result of a device-link step: the output, and the linked cubins in it."""

    __slots__ = ("_pieces", "cubins", "diagnostics")

    cubins: Mapping[str, bytes]
    """The linked cubin of each architecture, in the order of the links."""
    diagnostics: Diagnostics
    """The diagnostics of the links, in the order of the architectures."""

    def __init__(
        self, pieces: list[bytes], cubins: Mapping[str, bytes], diagnostics: Iterable[Diagnostic]
    ) -> None:
        self._pieces = pieces  # of the output; `data` joins them
        self.cubins = cubins
        self.diagnostics = Diagnostics(diagnostics)

    @property
    def data(self) -> bytes:
        """The object, the fat binary or the cubin, also if it was written to a file."""
        if len(self._pieces) > 1:
            self._pieces = [b"".join(self._pieces)]
        return self._pieces[0]

    def __repr__(self) -> str:
        return f"<DlinkResult {', '.join(self.cubins)}>"


def dlink(
    inputs: Iterable[InputLike],
    *,
    archs: str | Iterable[str],
    output: Path | None = None,
    form: Literal["object", "unit", "fatbin", "cubin"] = "object",
    compress_mode: Literal["default", "size", "speed", "balance", "none"] = "default",
    line_info: bool = False,
    hidden: bool = False,
    cudadevrt: bool = True,
    host_machine: Literal["X86_64", "AARCH64"] | None = None,
    toolkit: Path | None = None,
    log: TextIO | None = None,
    progress: ProgressCall | bool | None = None,
    cancel: Cancel | None = None,
    **keywords: Unpack[LinkKeywords],
) -> DlinkResult:
    """Link `inputs` for all of `archs`, such as `["sm_80", "sm_90a"]`, like `nvcc -dlink`.

    Inputs are those of `link`, each read once: host objects, archives, fat binaries and cubins. The
    result is an object that registers the device code of all architectures with the CUDA runtime.
    Other values of `form` select a unit that a later step links (nvcc's -r; its id is the path of
    the output), the fat binary, or the cubin of the first architecture. With `output` the result is
    also written to that file, atomically.

    `compress_mode` and `line_info` are nvcc's -compress-mode and -lineinfo; `hidden` gives the
    functions of the object hidden visibility. `host_machine` is used if no input is a host object.
    `cudadevrt` links libcudadevrt of the CUDA toolkit in `toolkit` (default: the first toolkit that
    is found). `threads` links run at once (0: one for each core). `keywords` are options of each
    link, like those of `link`, except for options that write files. Diagnostics go to `log`.

    `progress` is called with "link", the number of finished links and the number of all; True shows
    a bar. `cancel` is checked between the phases of each link. If it is set, `output` is not
    written; maps and remarks of finished links stay.

    Raises LinkError if a link fails, with its diagnostics and those of the architectures before it;
    LinkCancelled if `cancel` was set; TypeError and ValueError for wrong arguments.
    """
    check_list(inputs)
    names = [archs] if isinstance(archs, str) else list(archs)
    request = Request(names, [])
    request.form = _check_one_of("form", form, DEFAULT_OUTPUTS)
    request.compress_mode = _check_one_of("compress_mode", compress_mode, MODES)
    _check_archs(names)
    if form == CUBIN:
        del names[1:]
    if host_machine is not None:
        _check_one_of("host_machine", host_machine, MACHINES)
    request.machine = host_machine
    request.output = None if output is None else os.fspath(output)
    request.line_info, request.hides = line_info, hidden
    request.cudadevrt, request.threads = cudadevrt, keywords.pop("threads", None) or 0
    if request.threads < 0:
        raise ValueError(f"threads is the number of links at once, not {request.threads}")
    _set_options(request, without_defaults(check_keywords(keywords)))
    following = Following(progress, cancel)
    lock = Lock()
    finished_count = 0

    def end_link() -> None:
        """Count a finished link, and report the progress."""
        nonlocal finished_count
        with lock:
            finished_count += 1
            following.report_progress("link", finished_count, len(names))

    callbacks = (
        LinkCallbacks(lambda tag: following.check(), end_link) if following.is_wanted else None
    )
    sink = Sink(*([] if log is None else [NvlinkRenderer(log)]), *logging_renderers())
    try:
        with ONE_FRAME:
            following.check()
            opened = _prepare_inputs(inputs, sink)
            request.inputs = [opened_file.name for opened_file in opened]
            tools = find_toolkit(None if toolkit is None else os.fspath(toolkit))
            step = make_step(request, tools, sink, opened, log, callbacks)
            if request.output is not None:
                following.check()
                write_step(step, request.output, sink)
    finally:
        following.close()
        sink.close()
    cubins = {link.arch: link.image for link in step.links}
    return DlinkResult(step.pieces, cubins, sink.diagnostics)


def _check_one_of(argument: str, value: str, allowed: Iterable[str]) -> str:
    """Return `value`; ValueError if the argument of `dlink` called `argument` does not allow it."""
    if value not in allowed:
        raise ValueError(f"{argument} is one of {', '.join(allowed)}, not {value!r}")
    return value


def _check_archs(names: list[str]) -> None:
    """Raise ValueError or TypeError unless the names are different known architectures."""
    if not names:
        raise ValueError("archs is empty; name an architecture such as 'sm_90a'")
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"archs has names such as 'sm_90a', not {name!r}")
        if not name.startswith("sm_") or name.removeprefix("sm_") not in NAMES:
            raise ValueError(f"not an architecture to link for: {name!r}")
    if len(set(names)) < len(names):
        raise ValueError("archs names an architecture twice")


def _set_options(request: Request, values: dict[str, Value]) -> None:
    """Set the options of the links, and those that are also options of the step.

    `values` are the options of the call, by attribute. Raises TypeError for an option that the step
    sets itself, and for one that writes a file.
    """
    for name in values:
        if name in STEP_OPTIONS or BY_ATTRIBUTE[name].writes:
            raise TypeError(f"dlink does not take the option {name!r}, which is for one link")
    for name, target in (("library", "libraries"), ("library_path", "library_path")):
        items = values.pop(name, ())
        assert isinstance(items, tuple)
        setattr(request, target, list(items))
    request.debug = bool(values.get("debug"))
    request.optimizes = bool(values.get("dlto") or values.get("link_time_opt"))
    request.values = values
    if request.form == UNIT:
        values["relocatable_link"] = True


def _prepare_inputs(inputs: Iterable[InputLike], sink: Sink) -> list[LinkInput]:
    """Return the inputs of the step, each with its name in diagnostics.

    A file whose name in diagnostics is not its path is read here; the step reads the others.
    """
    sources: list[LinkInput] = []
    numbers: dict[str, int] = {}  # by name: number of the first input with this name
    for number, item in enumerate(inputs):
        source = as_input(item, number)
        name = name_of(source, number, numbers)
        numbers.setdefault(name, number)
        sources.append(to_linker_input(source, name, sink))
    return sources
