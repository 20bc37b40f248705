"""A device-link step: read, link for each architecture, pack, and write the host object."""

from __future__ import annotations

import os

from pylink._native.cores import use_threads
from pylink.devicelink.compression import choose_mode
from pylink.devicelink.container import EntryForm, make_container, make_entry
from pylink.devicelink.hostmachine import host_cpu_arch
from pylink.devicelink.hostobject import LENT, OPTIONAL, HostObject, Unit
from pylink.devicelink.links import (
    LinkCallbacks,
    find_libraries_once,
    find_machine,
    link_all,
    open_step_reports,
    thread_count,
)
from pylink.devicelink.request import CUBIN, DEFAULT_OUTPUTS, FATBIN, OBJECT, UNIT
from pylink.devicelink.result import StepResult
from pylink.devicelink.unitobject import make_unit
from pylink.diagnostics.errors import reason_of
from pylink.facts.elf import MACHINE_OF_UNAME
from pylink.files.atomic import WholeFile, refuse_output
from pylink.files.workdir import working_directory
from pylink.options.model import Input
from pylink.outputs.depfile import files_of
from pylink.outputs.registerlink import module_id_of_file
from pylink.phases.sharing import SharedInputs
from pylink.timing import elapsed_ms, now

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TextIO

    from pylink.devicelink.links import Link
    from pylink.devicelink.request import Request
    from pylink.devicelink.toolkit import Toolkit
    from pylink.diagnostics import Sink

DEFAULT_MACHINE = "X86_64"
MACHINE_TIMEOUT_S = 30  # time for the compiler's answer to -dumpmachine


def make_step(
    request: Request,
    toolkit: Toolkit,
    sink: Sink,
    opened: Sequence[Input] | None = None,
    stream: TextIO | None = None,
    callbacks: LinkCallbacks | None = None,
    *,
    keeps_cubins: bool = True,
) -> StepResult:
    """Do a device-link step in memory; LinkError if a link failed or a diagnostic was fatal.

    `opened` are the inputs (default: the files that the request names); those with data are not
    read from files. `stream` gets messages in a format other than nvlink's (default: standard
    error); those in nvlink's format go to the renderers of `sink`. With `keeps_cubins` the links of
    the result keep their images, which take memory beside the fat binary.
    """
    if opened is None:
        opened = [Input(name) for name in request.inputs]
    names = [source.name for source in opened if source.data is None]
    plan = open_step_reports(request, names, sink, stream)
    is_unit = request.form == UNIT
    form = EntryForm(
        choose_mode(request.compress_mode, debug=request.debug, compress_all=is_unit),
        debug=request.debug,
        name=os.fsencode(request.entry_name),
    )

    def pack(link: Link) -> None:
        """Make the entry of the fat binary for the image of a link."""
        start = now()
        link.entry = make_entry(link.arch, link.image, form)
        if not keeps_cubins:
            link.image = b""
        link.packing_ms = elapsed_ms(start, now())

    prepared: list[HostObject] = []  # one, unless the step has no host object

    def unmap(shared: SharedInputs, links: list[Link]) -> None:
        _unmap_inputs(request, shared, keeps=_has_diagnostics(sink, links))

    def prepare(_: SharedInputs, links: list[Link]) -> None:
        """Make the parts of the host object that do not depend on the fat binary."""
        prepared.append(_prepare_object(request, links[-1], machine))

    # While an input is mapped, a program that writes it must wait. Inputs are not mapped if
    # compilers or slow compression would make it wait too long.
    maps = not request.optimizes and form.mode.is_fast
    with SharedInputs(
        request.archs, optimizes=request.optimizes, maps=maps, threads=thread_count(request)
    ) as shared:
        shared.add(opened, plan, sink)
        machine = (
            find_machine(shared, sink)
            or request.machine
            or _find_compiler_machine(request.compiler)
        )
        libraries = find_libraries_once(request, machine, toolkit, sink)
        shared.add(libraries, plan, sink)
        shared.everything = [*opened, *libraries]
        links = link_all(
            request,
            shared,
            machine,
            toolkit,
            sink,
            callbacks or LinkCallbacks(),
            pack=None if request.form == CUBIN else pack,
            when_linked=[prepare, unmap] if request.form == OBJECT else [unmap],
        )
        # From here on, only diagnostics read inputs. If there are any, copies of the inputs stay.
        shared.unmap(keeps=bool(sink.diagnostics))
        shared.refuse_changes(sink)
    step = StepResult(links, _list_files_read(request, shared.everything, links))
    del shared, libraries
    if request.form == CUBIN:
        step.pieces = [links[0].image]
        return step
    start = now()
    container = make_container([link.entry for link in links if link.entry is not None])
    packed_at = now()
    step.packing_ms = sum(link.packing_ms for link in links) + elapsed_ms(start, packed_at)
    if request.form == FATBIN:
        step.pieces = container.pieces
        return step
    if is_unit:
        identifier = module_id_of_file(request.output or DEFAULT_OUTPUTS[UNIT], working_directory())
        step.pieces = make_unit(identifier, container, machine)
    else:
        host_object = prepared[0] if prepared else _prepare_object(request, links[-1], machine)
        step.pieces = host_object.pieces(container)
    step.finishing_ms = elapsed_ms(packed_at, now())
    return step


def _has_diagnostics(sink: Sink, links: Sequence[Link]) -> bool:
    """Return whether the step or a link reported diagnostics, which may still read the inputs."""
    return bool(sink.diagnostics) or any(link.sink.diagnostics for link in links)


def _unmap_inputs(request: Request, shared: SharedInputs, *, keeps: bool) -> None:
    """Unmap the inputs while other threads still pack, with the help of threads that are free.

    With `keeps` the inputs are copied, for diagnostics.
    """
    threads_before = use_threads(thread_count(request))
    try:
        shared.unmap(keeps=keeps)
    finally:
        use_threads(threads_before)


def _prepare_object(request: Request, link: Link, machine: str) -> HostObject:
    """Return the host object of the step, without the fat binary; `link` is the step's last one."""
    return HostObject(
        _find_units(link), machine, hides=request.hides, backwards=request.optimizes_host
    )


def _list_files_read(request: Request, inputs: Sequence[Input], links: Sequence[Link]) -> list[str]:
    """Return the files of the inputs, with members of thin archives, and the options files."""
    members: dict[str, list[str]] = {}
    for link in links:
        members.update(link.members)
    names = [source.name for source in inputs]
    return [*files_of(names, members), *request.options_files]


def run_step(request: Request, toolkit: Toolkit, sink: Sink) -> StepResult:
    """Do a device-link step and write its output; LinkError if that fails: the old output stays."""
    assert request.output is not None
    start = now()
    step = make_step(request, toolkit, sink, keeps_cubins=False)
    write_start = now()
    write_step(step, request.output, sink)
    end = now()
    if step.finishing_ms is not None:
        step.finishing_ms += elapsed_ms(write_start, end)
    if request.timings is not None or request.values.get("depfile"):
        from pylink.devicelink.stepreports import write_depfiles, write_times

        write_depfiles(request, step, sink)
        write_times(request, step, elapsed_ms(start, end), sink)
    return step


def write_step(step: StepResult, output: str, sink: Sink) -> None:
    """Write the output atomically; a fatal diagnostic if that fails."""
    try:
        file = WholeFile(output)
    except (OSError, ValueError) as error:
        refuse_output(output, error, sink)
    try:
        for piece in step.pieces:
            file.write(piece)
        file.commit()
    except OSError as error:
        sink.fatal("cannot-write-file", file=output, reason=reason_of(error))
    finally:
        file.discard()


def _find_units(link: Link) -> list[Unit]:
    """Return the units, i.e. linked modules, that the object registers.

    Like nvcc's object, it registers those that `link`, the last one of the step, lists. Those that
    shared libraries lend to the link follow.
    """
    registered = link.registered
    libraries = registered.libraries
    anchors = libraries.anchors if libraries is not None else {}
    optional = libraries.optional if libraries is not None else ()
    units = []
    for name, is_id in registered.listed:
        if is_id and name in anchors:
            units.append(Unit(name, hidden=True, anchor=anchors[name]))
        elif is_id and name in optional:
            units.append(Unit(name, role=OPTIONAL))
        else:
            units.append(Unit(name if is_id else module_id_of_file(name, working_directory())))
    if libraries is not None:
        units += [Unit(name, role=LENT) for name in libraries.lent]
    return units


def _find_compiler_machine(compiler: str | None) -> str:
    """Return the -cpu-arch name of a host compiler's target; that of this machine if it is unknown.

    `compiler` is the path of the compiler or of its directory, None for this machine. A machine for
    which pylink has no host code counts as DEFAULT_MACHINE.
    """
    own_arch = host_cpu_arch(MACHINE_OF_UNAME.get(os.uname().machine, 0)) or DEFAULT_MACHINE
    if compiler is None:
        return own_arch
    from pylink.subtools.runner import output_of

    command = os.path.join(compiler, "gcc") if os.path.isdir(compiler) else compiler
    target = output_of([command, "-dumpmachine"], timeout=MACHINE_TIMEOUT_S).partition("-")[0]
    return host_cpu_arch(MACHINE_OF_UNAME.get(target, 0)) or own_arch
