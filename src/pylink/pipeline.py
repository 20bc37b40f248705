"""The phases of a link, in order, with their timer."""

from __future__ import annotations

import sys

from pylink.diagnostics.errors import LinkError
from pylink.files.buffer import OutputBuffer
from pylink.observer import Steps
from pylink.observers import make_observers
from pylink.phases.finalize import finalize
from pylink.phases.init import init
from pylink.phases.layout import layout
from pylink.phases.load import load
from pylink.phases.merge import merge
from pylink.phases.read import read
from pylink.phases.relocate import relocate
from pylink.phases.write import write
from pylink.timing import TRACE_PHASES, CsvTiming, PhaseTimer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Concatenate, ParamSpec, TypeVar

    from pylink.diagnostics import Sink
    from pylink.files.lazyfile import LazyFile
    from pylink.inputs.loaded import Loaded
    from pylink.inputs.sharedlib import Libraries
    from pylink.observer import Observer
    from pylink.options.model import Input, Options
    from pylink.options.plan import OutputPlan
    from pylink.phases.init import Job
    from pylink.phases.lto import Optimized
    from pylink.phases.sharing import SharedInputs
    from pylink.profile.model import Profile

    Arguments = ParamSpec("Arguments")
    Result = TypeVar("Result")


class LinkOutput:
    """The linked file, the milliseconds of each phase, and the profile if asked for.

    `timings` has each phase by its tag, except for init, at whose end the timer starts. A large
    image may be in the written file only, and is read on demand.
    """

    __slots__ = ("image", "profile", "timings")

    def __init__(
        self, image: bytes | LazyFile, timings: dict[str, float], profile: Profile | None
    ) -> None:
        self.image = image
        self.timings = timings
        self.profile = profile


class HostRegistration:
    """Modules that a link registers with the host.

    `listed` has module ids (True) and names of files (False), as in `Loaded.registered`;
    `libraries` is `Loaded.libraries`. A caller that generates the host's code itself passes one to
    `link`, which fills it.
    """

    __slots__ = ("libraries", "listed")

    def __init__(self) -> None:
        self.listed: list[tuple[str, bool]] = []
        self.libraries: Libraries | None = None


def link(
    options: Options,
    inputs: list[Input],
    plan: OutputPlan,
    sink: Sink,
    *,
    shows_progress: bool = False,
    registered: HostRegistration | None = None,
    shared: SharedInputs | None = None,
    on_phase_end: Callable[[str], None] | None = None,
) -> LinkOutput:
    """Link `inputs`; LinkError on failure, with the diagnostics in `sink`.

    `plan` has the files that will be written. With `shows_progress` a terminal shows the link's
    progress, after a second. `registered` is filled in place of the file of
    --register-link-binaries. `shared` has inputs that other links read, too. `on_phase_end` is
    called with the tag of each phase that ended.
    """
    timer = PhaseTimer(sys.stderr if (options.edbg or 0) & TRACE_PHASES else None)
    timing = _open_timing(options, sink)
    observers = make_observers(options, sink, shows_progress=shows_progress)
    steps = Steps(observers, on_phase_end)
    failed = True
    try:
        # A large output is made in its file, unless an observer reads it, or --write-if-changed
        # must compare it with the file first.
        needs_image = any(observer.needs_image for observer in observers)
        in_place = None if options.write_if_changed or needs_image else options.output_file
        run = Runner(sink, timer, steps)
        job = run("init", init, options, inputs, plan, steps)
        with job.mapped:
            image = _link_inputs(run, job, timing, in_place, registered, shared)
        failed = False
    finally:
        steps.drop_observers()
        _close_observers(observers, timer, sink, failed=failed)
    profiles = [observer.profile for observer in observers if observer.profile is not None]
    observers.clear()  # they refer to results, whose arenas are given back
    job.pages.give_back()
    return LinkOutput(image, timer.timings, profiles[0] if profiles else None)


def _close_observers(
    observers: list[Observer], timer: PhaseTimer, sink: Sink, *, failed: bool
) -> None:
    """Close the observers of the link, in order.

    Without phase read no cubin was linked: link-time optimization produced the program. If an
    observer cannot write its file, the link has failed for those after it.
    """
    no_cubins = not failed and "read" not in timer.timings
    first_error: Exception | None = None
    for observer in observers:
        try:
            observer.close(failed=failed or (no_cubins and observer.needs_cubins))
        except Exception as error:
            failed, first_error = True, first_error or error
    if first_error is not None:
        raise first_error
    if no_cubins and any(observer.needs_cubins for observer in observers):
        sink.report("nothing-linked")


class Runner:
    """Runs a phase on results of earlier ones, times it under its tag and calls the observers.

    A phase that returns None after errors, its own or earlier ones, ends the link.
    """

    __slots__ = ("sink", "steps", "timer")

    def __init__(self, sink: Sink, timer: PhaseTimer, steps: Steps) -> None:
        self.sink = sink
        self.timer = timer
        self.steps = steps

    def __call__(
        self,
        tag: str,
        phase: Callable[Concatenate[Sink, Arguments], Result | None],
        /,
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Result:
        sink, timer, steps = self.sink, self.timer, self.steps
        result = phase(sink, *args, **kwargs)
        if sink.errors and result is None:
            sink.stop()
        timer.checkpoint(tag)
        if steps.observers:
            for observer in steps.observers:
                observer.phase_ended(tag, result)
            for observer in steps.observers:
                observer.resume()
            timer.resume()
        if steps.on_phase_end is not None:
            steps.on_phase_end(tag)
            timer.resume()
        # Without errors, only a phase that has no result returns None.
        return result  # type: ignore[return-value]


def _link_inputs(
    run: Runner,
    job: Job,
    timing: CsvTiming,
    in_place: str | None,
    registered: HostRegistration | None,
    shared: SharedInputs | None,
) -> bytes | LazyFile:
    """Run the phases after init in order and return the linked file.

    `in_place` is the path of the output if it may be made in its file, else None. A large output is
    then only in the file, and is read on demand.
    """
    sink = run.sink
    # Loading is not a phase of its own: its time counts for the phase that follows.
    loaded = load(sink, job, timing, shared)
    program = optimize(run, loaded, timing) if job.optimizes else None
    if program is not None:
        loaded = program.loaded
    with Registration(loaded, sink, registered):
        if program is not None and program.image:  # the whole program, or PTX: nothing to link
            run("write", write, program, None)
            return program.image
        # From here on, no input is opened.
        objects = run("read", read, loaded)
        merged = run("merge", merge, objects)
        # From here on, no section or symbol appears; docs/order.md says where each came from.
        placed = run("layout", layout, merged)
        if job.options.verbose:
            from pylink.phases.report_use import report_use

            run("report", report_use, placed)
        if sink.errors:
            sink.stop()
        # From here on, addresses are fixed.
        with OutputBuffer(placed.size, in_place) as buffer:
            # This writes contents in file order, and in a link without observers the tables, too.
            image = run("relocate", relocate, placed, buffer)
            # This writes the rest: headers, and in a link with observers the tables.
            final = run("finalize", finalize, image)
            # The file gets its name only now, when it is complete.
            run("write", write, final, buffer)
            return buffer.image


class Registration:
    """Writes the file of --register-link-binaries when a link ends.

    nvlink writes it right after merging, so errors of later phases do not prevent it. Here, no
    error after loading does, except for one that ends the link at once.
    """

    __slots__ = ("loaded", "registered", "sink")

    def __init__(self, loaded: Loaded, sink: Sink, registered: HostRegistration | None) -> None:
        self.loaded = loaded
        self.sink = sink
        self.registered = registered

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        loaded, sink = self.loaded, self.sink
        file = loaded.job.options.register_link_binaries
        if file is None or sink.exit_code() == 1:
            return
        if not (error is None or isinstance(error, LinkError)):  # interrupted, not failed
            return
        libraries = loaded.libraries
        listed = loaded.registered
        if listed is None:
            listed = [(source.name, False) for source in loaded.job.inputs]
        if self.registered is not None:
            self.registered.listed, self.registered.libraries = listed, libraries
            return
        from pylink.outputs.registerlink import write_register_file

        write_register_file(
            file,
            listed,
            sink,
            anchors=libraries.anchors if libraries is not None else {},
            lent=libraries.lent if libraries is not None else (),
            optional=libraries.optional if libraries is not None else (),
        )


def optimize(run: Runner, loaded: Loaded, timing: CsvTiming) -> Optimized | None:
    """Run the phases of link-time optimization; None without LTO-IR."""
    from pylink.phases.lto import check_modules, cicc_lto, ptxas_lto

    if not check_modules(loaded, run.sink):
        return None
    program = run("cicc-lto", cicc_lto, loaded, timing)
    return program if program.image else run("ptxas-lto", ptxas_lto, program, timing)


def _open_timing(options: Options, sink: Sink) -> CsvTiming:
    """Open the table of -time, which gets its header before any input is opened."""
    try:
        timing = CsvTiming(options.time)
    except (OSError, ValueError):
        sink.fatal("cannot-open-file", file=options.time)
    if not timing.complete:
        sink.report("report-incomplete", file=options.time)
    return timing
