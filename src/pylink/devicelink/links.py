"""The links of a step: one for each architecture, in parallel, with shared inputs.

Messages are shown in the order of the architectures. After the first link that fails, messages of
later architectures are not shown.
"""

from __future__ import annotations

import os
from _thread import allocate_lock
from itertools import zip_longest

from pylink import pipeline
from pylink._native.cores import count_cores
from pylink.devicelink.hostmachine import host_cpu_arch
from pylink.devicelink.nvccoptions import is_library
from pylink.devicelink.request import OBJECT
from pylink.diagnostics import Sink
from pylink.diagnostics.errors import LinkError
from pylink.diagnostics.nvlink import NVLINK
from pylink.facts.target import FAMILY_C, Target
from pylink.inputs.kinds import ELF_MAGIC, MACHINE
from pylink.inputs.libraries import find_libraries
from pylink.options.check import check
from pylink.options.filenames import SIDE_OPTIONS, expand_names
from pylink.options.model import Options
from pylink.options.plan import OutputPlan, output_identity, plan_outputs
from pylink.phases.sidebyside import run_side_by_side
from pylink.pipeline import HostRegistration
from pylink.renderers.configuration import configure_sink, open_reports
from pylink.timing import elapsed_ms, now

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TextIO

    from pylink.devicelink.request import Request
    from pylink.devicelink.toolkit import Toolkit
    from pylink.options.model import Input
    from pylink.options.plan import OutputIdentity
    from pylink.options.table import Value
    from pylink.outputs.reproducer import Reproducer
    from pylink.phases.sharing import SharedInputs

DEVICE_RUNTIME = "cudadevrt"
# Time for which a thread waits for the last link before it looks whether a thread has raised an
# exception.
SECONDS_BETWEEN_LOOKS = 0.1
# Options whose output a link prints at once, not through its sink.
TRACING_OPTIONS = ("edbg",)
# Reports that a step writes once, unless their names depend on the architecture.
REPORTS = ("diag_log", "sarif_output")
# Options with files that each link writes; the step writes reports and the depfile.
LINK_FILES = tuple(option for option in SIDE_OPTIONS if option not in (*REPORTS, "depfile"))


class Link:
    """The link for one architecture: its sink, and later the image and the registered modules.

    `members` has, by thin archive, the files of the members that the link read. `entry` has the
    pieces of its entry in the container; None until it is packed. `link_ms` and `packing_ms` are
    the milliseconds that the link and the packing took.
    """

    __slots__ = (
        "arch",
        "entry",
        "failed",
        "image",
        "link_ms",
        "members",
        "packing_ms",
        "registered",
        "sink",
    )

    def __init__(self, arch: str) -> None:
        self.arch = arch
        self.sink = Sink()
        self.image = b""
        self.registered = HostRegistration()
        self.failed = False
        self.members: dict[str, list[str]] = {}
        self.link_ms = 0.0
        self.entry: list[bytes] | None = None
        self.packing_ms = 0.0


class LinkCallbacks:
    """Callbacks for the progress of a step's links; each is called in the thread of its link.

    `on_phase_end` is called with the tag of each phase that ended, `on_link_end` after each link.
    """

    __slots__ = ("on_link_end", "on_phase_end")

    def __init__(
        self,
        on_phase_end: Callable[[str], None] | None = None,
        on_link_end: Callable[[], None] | None = None,
    ) -> None:
        self.on_phase_end = on_phase_end
        self.on_link_end = on_link_end


def open_step_reports(
    request: Request, inputs: Sequence[str], sink: Sink, stream: TextIO | None = None
) -> OutputPlan:
    """Return the plan of the output files of a device-link step.

    Adds the renderers of the step's log and SARIF document to the sink. `inputs` are the paths of
    the input files. If the options select a format for messages other than nvlink's, a sink that
    shows messages shows them in it, on `stream` (None: standard error). A file that links for two
    architectures would write is a fatal diagnostic.
    """
    values = {**request.values, "output_file": request.report_name or request.output}
    if sink.renderers and not is_plain(values):
        configure_sink(sink, values, inputs=inputs, stream=stream)
    _refuse_shared_files(request, sink)
    reports = _step_reports(request)
    plan = OutputPlan({"output_file": request.output, **reports}, inputs, sink)
    report_values: dict[str, Value] = {
        **reports,
        "output_file": request.report_name or request.output,
    }
    if len(request.archs) == 1:
        report_values["arch"] = request.archs[0]
    open_reports(sink, report_values)
    return plan


def _refuse_shared_files(request: Request, sink: Sink) -> None:
    """End the step with an error if links for two architectures would write the same file."""
    first_arch: dict[OutputIdentity, str] = {}  # by file: the first architecture to write it
    for arch in request.archs:
        values = {option: request.values.get(option) for option in LINK_FILES}
        expanded: dict[str, Value] = {**values, "Xopt": request.values.get("Xopt"), "arch": arch}
        expand_names(expanded, request.report_name)
        for output in plan_outputs(expanded, sink):
            identity = output_identity(output.path)
            other = arch if identity is None else first_arch.setdefault(identity, arch)
            if other != arch:
                sink.fatal(
                    "links-write-one-file",
                    option=output.option,
                    file=output.path,
                    arch=other,
                    other=arch,
                )


def _step_reports(request: Request) -> dict[str, Value]:
    """Return the files of reports that the step writes once, not for each link, by option."""
    reports: dict[str, Value] = {}
    for option in REPORTS:
        names = []  # with the first and the last architecture: equal if names do not contain it
        for arch in dict.fromkeys((request.archs[0], request.archs[-1])):
            values = {option: request.values.get(option), "arch": arch}
            expand_names(values, request.report_name)
            names.append(values[option])
        if names[0] and (len(request.archs) == 1 or names[0] == names[-1]):
            reports[option] = names[0]
    return reports


def find_machine(shared: SharedInputs, sink: Sink) -> str | None:
    """Return the -cpu-arch name of the machine that the host objects are for.

    None without host objects, or for an unknown machine. Host objects for different machines are a
    fatal diagnostic.
    """
    machines: dict[int, str] = {}  # the first object for each ELF machine
    for head, name in shared.different_heads(MACHINE.stop, is_library).items():
        machine = int.from_bytes(head[MACHINE], "little")
        if machine in machines or not head.startswith(ELF_MAGIC) or len(head) < MACHINE.stop:
            continue
        machines[machine] = name
        if len(machines) > 1:
            sink.fatal("machines-differ", file=name, other=next(iter(machines.values())))
    return host_cpu_arch(next(iter(machines), 0))


def thread_count(request: Request) -> int:
    """Return the most links that may run at once: as requested, or one for each core."""
    return request.threads or count_cores()


class LastLink:
    """The end of the last of `count` links, for which threads wait.

    `raised` is the list that gets the exceptions of the links' threads. `wait` looks at it, since
    after an exception some links may never begin or end.
    """

    __slots__ = ("_ended", "_lock", "_raised", "_unfinished")

    def __init__(self, count: int, raised: list[BaseException]) -> None:
        self._unfinished = count  # guarded by `_lock`
        self._lock = allocate_lock()
        self._ended = allocate_lock()  # held until the last link has ended
        self._ended.acquire()
        self._raised = raised

    def count_end(self) -> None:
        """Count a link that has ended."""
        with self._lock:
            self._unfinished -= 1
            if not self._unfinished:
                self._ended.release()

    def wait(self) -> bool:
        """Wait for the end of the last link; False if a thread raised an exception before it."""
        while not self._ended.acquire(timeout=SECONDS_BETWEEN_LOOKS):
            if self._raised:
                return False
        self._ended.release()
        return True


def link_all(
    request: Request,
    shared: SharedInputs,
    machine: str,
    toolkit: Toolkit,
    sink: Sink,
    callbacks: LinkCallbacks,
    *,
    pack: Callable[[Link], None] | None = None,
    when_linked: Sequence[Callable[[SharedInputs, list[Link]], None]] = (),
) -> list[Link]:
    """Link the shared inputs for each architecture; return the links, in the architectures' order.

    LinkError if a link failed. `pack` is called with each link that succeeded, in the threads of
    the links, or after all links if these run one by one, since they write reports.
    Threads that have no more links wait until all have ended, and if none has failed, call the
    functions of `when_linked`, each once. Meanwhile, other threads may still pack.
    """
    values = link_values(request, machine, toolkit)
    links = [Link(arch) for arch in request.archs]

    count = thread_count(request)
    one_by_one = count > 1 and _writes_reports(values)

    raised: list[BaseException] = []
    last_link = LastLink(len(links), raised)

    def work(number: int) -> None:
        """Do the link with this number and pack its result.

        A number after those of all links stands for a function of `when_linked`, which is called.
        """
        if number >= len(links):
            if last_link.wait() and not any(map(_has_failed, links)):
                when_linked[number - len(links)](shared, links)
            return
        current = links[number]
        linked = False
        try:
            linked = link(current)
        finally:
            last_link.count_end()
        if linked and pack is not None and not one_by_one:
            pack(current)

    def link(current: Link) -> bool:
        """Do a link, unless one for an earlier architecture has failed; False without a result."""
        # Messages of this link are not shown if that for an earlier architecture failed. A failure
        # for a later architecture does not matter.
        if any(other.failed for other in links[: links.index(current)]):
            return False
        start = now()
        try:
            tool = NVLINK if sink.policy.in_nvlinks_place else "pylink"
            on_phase_end = callbacks.on_phase_end
            _link(
                current,
                request,
                values,
                shared,
                toolkit.release,
                tool=tool,
                on_phase_end=on_phase_end,
            )
        except LinkError:
            current.failed = True
        except BaseException:
            current.failed = True  # an incomplete result is not used
            raise
        current.link_ms = elapsed_ms(start, now())
        if callbacks.on_link_end is not None:
            callbacks.on_link_end()
        return not current.failed

    count_at_once = 1 if one_by_one else min(count, len(links))
    order = [*range(len(links))] if count_at_once == 1 else order_to_begin(request.archs)
    items = [*order, *range(len(links), len(links) + len(when_linked))]
    run_side_by_side(work, items, count_at_once, raised)
    for finished in links:
        _show_messages(finished, sink, names_target=len(links) > 1)
        if finished.failed:
            sink.terminated = finished.sink.terminated
            sink.stop()
    if pack is not None and one_by_one:
        run_side_by_side(pack, links, count)
    return links


def order_to_begin(archs: Sequence[str]) -> list[int]:
    """Return the numbers of links in the order in which threads begin them.

    No result depends on it. The last of `archs` are usually the newest, whose links take longest:
    these come first, so that threads end at about the same time. Links of family C (sm_100 and
    later), the longest, alternate with others: equal links that begin together also wait for the
    interpreter and the memory together.
    """
    orders: dict[bool, list[int]] = {True: [], False: []}  # numbers of links; True: of family C
    for number in reversed(range(len(archs))):
        orders[Target(archs[number]).family == FAMILY_C].append(number)
    pairs = zip_longest(orders[True], orders[False])
    return [number for pair in pairs for number in pair if number is not None]


def _has_failed(link: Link) -> bool:
    return link.failed


def _show_messages(link: Link, sink: Sink, *, names_target: bool) -> None:
    """Show and count the diagnostics of a link, with the severities of its own sink.

    With `names_target` renderers say for which architecture a message is.
    """
    for renderer in sink.renderers:
        if names_target:
            renderer.for_target(link.arch)
        for record in link.sink.diagnostics:
            renderer.emit(record)
        renderer.for_target(None)
    sink.diagnostics += link.sink.diagnostics
    sink.follows = link.sink.follows or sink.follows
    sink.errors += link.sink.errors
    sink.warnings += link.sink.warnings
    sink.catastrophes += link.sink.catastrophes


def _writes_reports(values: Mapping[str, Value]) -> bool:
    """Return whether links write further files, or print while they run.

    Such links run one after the other, like those of nvcc: they may write to the same terminal or
    device.
    """
    return any(values.get(option) for option in (*SIDE_OPTIONS, *TRACING_OPTIONS))


def _link(
    link: Link,
    request: Request,
    common_values: dict[str, Value],
    shared: SharedInputs,
    release: str | None,
    *,
    tool: str,
    on_phase_end: Callable[[str], None] | None,
) -> None:
    """Do one link; LinkError if it fails, with the messages in its sink.

    `common_values` are the options that all links of the step have. `release` is the release of the
    toolkit, None if it is not known. `tool` is the first word of messages.
    """
    inputs = shared.everything
    values = {**common_values, "arch": link.arch}
    expand_names(values, request.report_name)
    sink = link.sink
    configure_sink(sink, values, tool=tool)
    sink.renderers.clear()  # `_show_messages` renders the messages in the order of the links
    check(values, sink, has_inputs=True, needs_output=False, needs_nvvmpath=False, toolkit=release)
    names = [source.name for source in inputs]
    options = Options(
        values, names, allows_no_code=True, toolkit=release, subject=request.report_name
    )
    reproducer = None
    failed = True
    try:
        plan = OutputPlan(values, names, sink)
        open_reports(sink, values)
        if options.reproduce is not None:
            reproducer = _make_reproducer(options, values, inputs, plan)
        linked = pipeline.link(
            options,
            inputs,
            plan,
            sink,
            registered=link.registered,
            shared=shared,
            on_phase_end=on_phase_end,
        )
        failed = bool(sink.errors)
    finally:
        try:
            if reproducer is not None:
                from pylink.outputs.reproducer import pack_after

                pack_after(reproducer, sink, failed=failed)
        finally:
            sink.close()
    if sink.errors:
        sink.stop()
    assert isinstance(linked.image, bytes)
    link.image = linked.image
    link.members = plan.members


def _make_reproducer(
    options: Options, values: Mapping[str, Value], inputs: Sequence[Input], plan: OutputPlan
) -> Reproducer:
    """Return the reproducer of one link of a step; the inputs include the libraries of -l."""
    from pylink.outputs.reproducer import Reproducer

    packed = {name: value for name, value in values.items() if name != "library"}
    # The option stays, since it selects kernels; the repeated link need not write its file.
    if "register_link_binaries" in packed:
        packed["register_link_binaries"] = os.devnull
    return Reproducer(options, packed, inputs, (), plan)


def is_plain(values: Mapping[str, Value]) -> bool:
    """Return whether the options select nvlink's format for messages."""
    return values.get("diagnostics_format", "nvlink") == "nvlink" and "output_mode" not in values


def link_values(request: Request, machine: str, toolkit: Toolkit) -> dict[str, Value]:
    """Return the options of the links, as nvcc passes them to nvlink.

    They are the same as nvcc's, since a note in the output lists them.
    """
    values: dict[str, Value] = {
        "machine": 64,
        "library": tuple(_library_names(request)),
        "library_path": (*request.library_path, *toolkit.nvlink_directories),
        "cpu_arch": machine,
        "allow_missing_libraries": True,
        **request.values,
    }
    for option in ("depfile", *_step_reports(request)):  # the step writes these
        values.pop(option, None)
    if not values["library"]:
        del values["library"]
    if not values["library_path"]:
        del values["library_path"]
    if len(request.archs) > 1:
        values["report_arch"] = True
    if request.form == OBJECT:
        values["register_link_binaries"] = ""  # the modules are taken from the link, not a file
    if request.optimizes and toolkit.nvvm is not None:
        values["nvvmpath"] = toolkit.nvvm
    return values


def _library_names(request: Request) -> list[str]:
    """Return the names of the libraries to link, without `lib` and the extension."""
    return [*request.libraries, *([DEVICE_RUNTIME] if request.cudadevrt else [])]


def find_libraries_once(
    request: Request, machine: str, toolkit: Toolkit, sink: Sink
) -> list[Input]:
    """Return the archives and libraries of -l, found once for all links."""
    values = link_values(request, machine, toolkit)
    searched = (*request.library_path, *toolkit.library_path)
    options = Options({**values, "arch": request.archs[0], "library_path": searched})
    plan = OutputPlan({}, (), sink)
    return find_libraries(options, [False] * len(options.library), plan, sink)
