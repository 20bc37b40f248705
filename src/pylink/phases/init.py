"""Phase init: derives from the options what the other phases do."""

from __future__ import annotations

from pylink._native import inputfiles
from pylink._native.recycling import RecycledPages
from pylink.facts.rownumbers import LinkMode
from pylink.facts.target import FAMILY_A, FAMILY_C, Target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.diagnostics import Sink
    from pylink.diagnostics.sourcefiles import SourceFiles
    from pylink.observer import Steps
    from pylink.options.model import Input, Options
    from pylink.options.plan import OutputPlan

# Bit of -edbg: print the inputs, which of their Mercury sections fold (are omitted as copies of an
# earlier file's), and the outcome for each file that was compared with an earlier one.
TRACE_FOLDS = 1


class Job:
    """One link: its options, inputs and target, and the mode bits that kernels test.

    `plan` has the files that the link writes, none of which it may read. `executable` is the
    opposite of -r, and `debug` is -g without --suppress-debug-info. `mode` has the bits of
    LinkMode. `steps` passes the ends of steps to observers. `mapped` are the inputs that are mapped
    into memory. `pages` has the memory of arenas (buffers that hold all inputs), which later links
    reuse. With `traces_folds` -edbg prints what becomes of Mercury sections. With `keeps_copies`
    no Mercury section is omitted as a copy, like --merc-dedup=off.
    """

    __slots__ = (
        "debug",
        "executable",
        "inputs",
        "keeps_copies",
        "mapped",
        "mode",
        "options",
        "pages",
        "plan",
        "steps",
        "target",
        "traces_folds",
    )

    def __init__(
        self, options: Options, inputs: list[Input], plan: OutputPlan, steps: Steps
    ) -> None:
        self.options = options
        self.plan = plan
        self.inputs = inputs
        self.steps = steps
        self.mapped = inputfiles.MappedFiles()
        self.pages = RecycledPages()
        self.keeps_copies = False  # `pylink dedup` sets it, to measure what folding saves
        self.target = Target(options.arch)
        self.traces_folds = bool((options.edbg or 0) & TRACE_FOLDS)
        self.executable = not options.relocatable_link
        self.debug = options.debug and not options.suppress_debug_info
        self.mode = (
            (LinkMode.RELOCATABLE if options.relocatable_link else 0)
            | (LinkMode.KEEP_RELOCS if options.preserve_relocs else 0)
            | (LinkMode.KEEP_CODE if self._keeps_code() else 0)
            | (LinkMode.DEBUG if self.debug else 0)
            | (LinkMode.NO_RESERVE if options.disable_smem_reservation else 0)
        )

    @property
    def optimizes(self) -> bool:
        """Whether LTO-IR is compiled."""
        return self.options.link_time_opt or self.options.dlto

    @property
    def uses_host_info(self) -> bool:
        """Whether options let the link remove kernels that no host code names."""
        return self.compiles_by_host_info and not (self.debug or self.options.relocatable_link)

    @property
    def compiles_by_host_info(self) -> bool:
        """Whether options let LTO of a whole program omit what no host code names.

        That is kernels and variables. LTO does so even with -g, which makes the link keep all
        kernels.
        """
        options = self.options
        return not (options.ignore_host_info or options.kernels_used or options.variables_used)

    @property
    def folds_mercury(self) -> bool:
        """Whether copies of Mercury sections are omitted.

        Not for older targets, which have no such sections. A relocatable output keeps all: the next
        link expects a Mercury line table for each plain one.
        """
        return (
            self.executable
            and self.target.family == FAMILY_C
            and self.options.merc_dedup != "off"
            and not self.keeps_copies
        )

    def source_files(self) -> SourceFiles:
        """Return the source files that diagnostics of this link may quote."""
        from pylink.diagnostics.sourcefiles import SourceFiles

        return SourceFiles(
            self.options.source_root,
            inputs=[source.name for source in self.inputs],
            directories=self.options.library_path,
        )

    @property
    def records_folds(self) -> bool:
        """Whether observers or -edbg need the comparison of all files' Mercury sections.

        Otherwise only files that could fold are compared.
        """
        return self.traces_folds or self.steps.records_folds

    @property
    def dumps_calls(self) -> bool:
        """Whether to print the call graph; never with -r, as in nvlink."""
        options = self.options
        return self.executable and (options.dump_callgraph or options.dump_callgraph_no_demangle)

    @property
    def folds_constants(self) -> bool:
        """Whether options ask to store identical pieces of the constant bank once.

        This is so with --kernels-used or --variables-used, except with -g or -r.
        """
        options = self.options
        if self.debug or options.relocatable_link:
            return False
        return any(options.kernels_used) or bool(options.variables_used)

    def _keeps_code(self) -> bool:
        """Return whether options keep dead code."""
        options = self.options
        return (
            options.debug
            or options.relocatable_link
            or options.preserve_relocs
            or options.link_as_tools_patch
        )


def init(sink: Sink, options: Options, inputs: list[Input], plan: OutputPlan, steps: Steps) -> Job:
    """Make the job of a link from its options and inputs."""
    job = Job(options, inputs, plan, steps)
    if options.preserve_relocs and job.target.family != FAMILY_A:
        sink.report("preserve-relocs-partial", arch=options.arch)
    return job
