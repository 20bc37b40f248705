"""Options of links as an object.

Generated from the option table: python -m pylink.api.generate.
"""

from __future__ import annotations

from pylink.api.values import OptionValues

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing_extensions import Unpack

    from pylink.api.keywords import LinkKeywords


class LinkOptions(OptionValues):
    """Options for several links; an object cannot be changed.

        options = pylink.LinkOptions(verbose=True, error_limit=10)
        pylink.link(["a.cubin"], options, arch="sm_90a")

    Each option is a keyword and an attribute. The keyword None is an option that is not given. The
    attribute of such an option is its default: False, an empty tuple, or None if the linker
    decides. `lto` is another name of `link_time_opt`. `given` has the options that were given.
    Objects with the same options are equal.

    Raises TypeError for an unknown option and for a value of a wrong type. The values themselves
    are checked by the link.
    """

    __slots__ = ()

    def __init__(self, **keywords: Unpack[LinkKeywords]) -> None:
        self._set_options(keywords)

    def replace(self, **keywords: Unpack[LinkKeywords]) -> LinkOptions:
        """Return options with these values; others are copied from this object."""
        merged = {**self.given, **keywords}
        return LinkOptions(**merged)  # type: ignore[arg-type]  # checked by the constructor

    @property
    def allow_empty(self) -> bool:
        """Produce an empty executable when there are no inputs."""
        return self._flag("allow_empty")

    @property
    def allow_missing_libraries(self) -> bool:
        """Ignore libraries that are not found, as nvlink does."""
        return self._flag("allow_missing_libraries")

    @property
    def apply_rules(self) -> str | None:
        """Whether rules examine the report of --profile (default: yes)."""
        return self._text("apply_rules")

    @property
    def brief_diagnostics(self) -> bool | None:
        """Print diagnostics without source lines and blank lines; text format only."""
        return self._truth("brief_diagnostics")

    @property
    def color(self) -> str | None:
        """Color the diagnostics; text format only."""
        return self._text("color")

    @property
    def cpu_arch(self) -> str | None:
        """Host CPU architecture that libraries of -l must match (default: this machine's)."""
        return self._text("cpu_arch")

    @property
    def debug(self) -> bool:
        """Link for debugging: keep all code, and record file names in the output."""
        return self._flag("debug")

    @property
    def depfile(self) -> str | None:
        """Write a rule for make and Ninja: the output, and every file that the link read."""
        return self._text("depfile")

    @property
    def depfile_target(self) -> str | None:
        """Target of the rule of --depfile (default: the output file). nvcc links into a temporary
        file: name the program.
        """
        return self._text("depfile_target")

    @property
    def device_stack_protector(self) -> bool | None:
        """Whether ptxas adds stack canaries to functions at risk, in what this link compiles."""
        return self._truth("device_stack_protector")

    @property
    def diag_error(self) -> tuple[str, ...]:
        """Report these diagnostics as errors."""
        return self._list("diag_error")

    @property
    def diag_log(self) -> str | None:
        """Write a log of all diagnostics, one line each."""
        return self._text("diag_log")

    @property
    def diag_min_severity(self) -> str | None:
        """Hide diagnostics below this severity. Output of -v and remarks of passes is kept."""
        return self._text("diag_min_severity")

    @property
    def diag_once(self) -> tuple[str, ...]:
        """Print each of these diagnostics at most once."""
        return self._list("diag_once")

    @property
    def diag_remark(self) -> tuple[str, ...]:
        """Report these diagnostics as remarks."""
        return self._list("diag_remark")

    @property
    def diag_summary(self) -> bool | None:
        """Print the number of errors at the end; text format only (default: true)."""
        return self._truth("diag_summary")

    @property
    def diag_suppress(self) -> tuple[str, ...]:
        """Do not print these diagnostics."""
        return self._list("diag_suppress")

    @property
    def diag_warning(self) -> tuple[str, ...]:
        """Report these diagnostics as warnings."""
        return self._list("diag_warning")

    @property
    def diagnostics_format(self) -> str | None:
        """Format of diagnostics: one line as nvlink prints, text with places and source lines, or
        SARIF.
        """
        return self._text("diagnostics_format")

    @property
    def disable_infos(self) -> bool:
        """Print no info messages, other than what --verbose asks for."""
        return self._flag("disable_infos")

    @property
    def disable_smem_reservation(self) -> bool | None:
        """From sm_90 on: place shared variables as if the system reserved no shared memory."""
        return self._truth("disable_smem_reservation")

    @property
    def disable_warnings(self) -> bool:
        """Print no warnings."""
        return self._flag("disable_warnings")

    @property
    def display_error_number(self) -> bool:
        """Print the number of each diagnostic; text format only."""
        return self._flag("display_error_number")

    @property
    def dlto(self) -> bool:
        """Like --link-time-opt."""
        return self._flag("dlto")

    @property
    def dump_callgraph(self) -> bool:
        """Print the call graph, with registers and entry points."""
        return self._flag("dump_callgraph")

    @property
    def dump_callgraph_no_demangle(self) -> bool:
        """Like --dump-callgraph, with mangled names."""
        return self._flag("dump_callgraph_no_demangle")

    @property
    def edbg(self) -> int | None:
        """Trace the linker: bit 1 prints what --merc-dedup decides for each input and each Mercury
        section that it omits, bit 0x20 the time of each phase. Unit: bits.
        """
        return self._number("edbg")

    @property
    def emit_ptx(self) -> bool:
        """Write the PTX of all LTO inputs, and link nothing; needs --dlto."""
        return self._flag("emit_ptx")

    @property
    def error_limit(self) -> int | None:
        """Stop after this many errors (default: 0, no limit). Unit: errors."""
        return self._number("error_limit")

    @property
    def extra_warnings(self) -> bool:
        """Warn about functions whose address is taken but that nothing calls."""
        return self._flag("extra_warnings")

    @property
    def force_partial_lto(self) -> bool:
        """Compile LTO-IR for a link with cubins, even if every input has some; needs --dlto."""
        return self._flag("force_partial_lto")

    @property
    def force_whole_lto(self) -> bool:
        """Compile LTO-IR as a whole program if every input has some (the default); refused with
        -r.
        """
        return self._flag("force_whole_lto")

    @property
    def host_ccbin(self) -> str | None:
        """Accepted and ignored; nvcc passes it."""
        return self._text("host_ccbin")

    @property
    def ignore_host_info(self) -> bool:
        """Keep device code that host code might refer to."""
        return self._flag("ignore_host_info")

    @property
    def keep_system_libraries(self) -> bool:
        """Keep unused code of system libraries such as cudadevrt."""
        return self._flag("keep_system_libraries")

    @property
    def kernels_used(self) -> tuple[str, ...]:
        """Keep only kernels with one of these texts in their names."""
        return self._list("kernels_used")

    @property
    def lazy_archives(self) -> bool:
        """Link only those members of archives that define what other code needs."""
        return self._flag("lazy_archives")

    @property
    def library(self) -> tuple[str, ...]:
        """Libraries to link, from the directories of -L and then of LIBRARY_PATH: the first
        libNAME.so, or else the first libNAME.a. :FILE is the file of that name.
        """
        return self._list("library")

    @property
    def library_path(self) -> tuple[str, ...]:
        """Directories to search for libraries."""
        return self._list("library_path")

    @property
    def link_as_tools_patch(self) -> bool:
        """Link code that tools insert into kernels: keep all of it, and refuse functions that were
        not compiled with --compile-as-tools-patch.
        """
        return self._flag("link_as_tools_patch")

    @property
    def link_time_opt(self) -> bool:
        """Compile the LTO inputs as one program; on the command line needs --nvvmpath. Cubins and
        PTX may be linked in.
        """
        return self._flag("link_time_opt")

    @property
    def machine(self) -> int | None:
        """Size of an address. Unit: bits."""
        return self._number("machine")

    @property
    def Map(self) -> str | None:
        """Write where everything in the output comes from, and why symbols were kept or removed."""
        return self._text("Map")

    @property
    def max_uncompressed_size(self) -> int | None:
        """Limit of the total size of decompressed device code (default: 100 times the size of all
        inputs, at least 268435456). Unit: bytes.
        """
        return self._number("max_uncompressed_size")

    @property
    def maxrregcount(self) -> int | None:
        """Register limit per function, for code that this link compiles. Unit: registers."""
        return self._number("maxrregcount")

    @property
    def merc_dedup(self) -> str | None:
        """Keep one copy of identical Mercury sections of several objects (default: on). Only
        executables for sm_100 and later contain any.
        """
        return self._text("merc_dedup")

    @property
    def metrics(self) -> tuple[str, ...]:
        """Put only these metrics into the report of --profile; regex:EXPRESSION selects several."""
        return self._list("metrics")

    @property
    def no_source_context(self) -> bool:
        """Print no source lines; text format only."""
        return self._flag("no_source_context")

    @property
    def no_wrap_diagnostics(self) -> bool:
        """Never break the lines of diagnostics."""
        return self._flag("no_wrap_diagnostics")

    @property
    def nvlink_version(self) -> str | None:
        """CUDA release whose nvlink to reproduce (default: that of the newest input, at least
        13.0).
        """
        return self._text("nvlink_version")

    @property
    def nvvm_latest(self) -> bool:
        """Compile LTO-IR for the newest NVVM; needs --dlto and nvJitLink 13.5."""
        return self._flag("nvvm_latest")

    @property
    def nvvmpath(self) -> str | None:
        """The nvvm directory of the toolkit whose libraries compile LTO inputs (default: the wheels
        nvidia-nvjitlink and nvidia-nvvm).
        """
        return self._text("nvvmpath")

    @property
    def Ofast_compile(self) -> str | None:
        """Compile LTO inputs faster, for slower programs; needs --dlto."""
        return self._text("Ofast_compile")

    @property
    def output_mode(self) -> str | None:
        """Like --diagnostics_format."""
        return self._text("output_mode")

    @property
    def pass_remarks(self) -> str | None:
        """Show what the passes whose names match did to the program."""
        return self._text("pass_remarks")

    @property
    def pass_remarks_analysis(self) -> str | None:
        """Show what these passes found."""
        return self._text("pass_remarks_analysis")

    @property
    def pass_remarks_bitstream_version(self) -> int | None:
        """Version of the container of --pass-remarks-format=bitstream: 0 for LLVM 19, 1 for LLVM 22
        (default: 1). Unit: version.
        """
        return self._number("pass_remarks_bitstream_version")

    @property
    def pass_remarks_filter(self) -> str | None:
        """Write only the remarks of these passes to the file of --pass-remarks-output."""
        return self._text("pass_remarks_filter")

    @property
    def pass_remarks_format(self) -> str | None:
        """Format of --pass-remarks-output (default: yaml)."""
        return self._text("pass_remarks_format")

    @property
    def pass_remarks_hotness_threshold(self) -> int | None:
        """Omit remarks that concern fewer bytes. Implies --pass-remarks-with-hotness. Unit:
        bytes.
        """
        return self._number("pass_remarks_hotness_threshold")

    @property
    def pass_remarks_missed(self) -> str | None:
        """Show what these passes could not do, and why."""
        return self._text("pass_remarks_missed")

    @property
    def pass_remarks_output(self) -> str | None:
        """Write all remarks to a file, which LLVM's tools read. - is standard output."""
        return self._text("pass_remarks_output")

    @property
    def pass_remarks_why_live(self) -> str | None:
        """With remarks of pass dce, tell along which calls a kernel reaches these functions."""
        return self._text("pass_remarks_why_live")

    @property
    def pass_remarks_with_hotness(self) -> bool:
        """Print with each remark how many bytes it concerns."""
        return self._flag("pass_remarks_with_hotness")

    @property
    def preserve_relocs(self) -> bool:
        """Keep a record of the relocations that were resolved."""
        return self._flag("preserve_relocs")

    @property
    def profile(self) -> str | None:
        """Write what the link cost, by phase, input, section and relocation type, as a report that
        Nsight Compute and `pylink report` open.
        """
        return self._text("profile")

    @property
    def profile_aprof(self) -> str | None:
        """Write how the cost of each routine grows with its input, as a report for aprof. Relinks
        parts of the inputs many times: 1 to 7 s of processor time, or some 12 times as long as the
        link if that is more.
        """
        return self._text("profile_aprof")

    @property
    def ptxas_path(self) -> str | None:
        """The ptxas that compiles PTX (default: from the wheel nvidia-cuda-nvcc, CUDA_HOME,
        CUDA_PATH or PATH, in this order).
        """
        return self._text("ptxas_path")

    @property
    def register_link_binaries(self) -> str | None:
        """Write a header with a registration macro for each linked object."""
        return self._text("register_link_binaries")

    @property
    def relocatable_link(self) -> bool:
        """Make an object that can be linked again."""
        return self._flag("relocatable_link")

    @property
    def report_arch(self) -> bool:
        """Print the target architecture in each message."""
        return self._flag("report_arch")

    @property
    def reproduce(self) -> str | None:
        """Write all that the link reads, and its options, as a .tar.zst, also when it fails;
        `pylink reproduce` links it again.
        """
        return self._text("reproduce")

    @property
    def rule(self) -> tuple[str, ...]:
        """Apply only these rules to the report of --profile."""
        return self._list("rule")

    @property
    def sarif_output(self) -> str | None:
        """Write a SARIF document of all diagnostics."""
        return self._text("sarif_output")

    @property
    def section(self) -> tuple[str, ...]:
        """Put these sections into the report of --profile, in place of the default set."""
        return self._list("section")

    @property
    def section_folder(self) -> tuple[str, ...]:
        """Directories of section and rule files, which replace the stock files and the user's."""
        return self._list("section_folder")

    @property
    def section_folder_recursive(self) -> tuple[str, ...]:
        """Like --section-folder, with all directories below."""
        return self._list("section_folder_recursive")

    @property
    def set(self) -> tuple[str, ...]:
        """Put these sets of sections into the report of --profile, such as full."""
        return self._list("set")

    @property
    def shared(self) -> bool:
        """Accepted, since nvcc passes it. Warnings about shared libraries take it to mean that the
        host link produces one.
        """
        return self._flag("shared")

    @property
    def source_root(self) -> tuple[str, ...]:
        """Directories of source files whose lines may be shown, besides the working directory and
        the directories of the inputs; text format only.
        """
        return self._list("source_root")

    @property
    def split_compile(self) -> int | None:
        """Threads that compile one LTO program; 0 uses one for each core. Unit: threads."""
        return self._number("split_compile")

    @property
    def split_compile_extended(self) -> int | None:
        """Accepted; the same as --split-compile. Unit: threads."""
        return self._number("split_compile_extended")

    @property
    def suppress_arch_warning(self) -> bool:
        """Do not warn about objects without code for the target."""
        return self._flag("suppress_arch_warning")

    @property
    def suppress_debug_info(self) -> bool:
        """Omit debug data from the output; needs --debug."""
        return self._flag("suppress_debug_info")

    @property
    def suppress_stack_size_warning(self) -> bool:
        """Do not warn about kernels of unknown stack size."""
        return self._flag("suppress_stack_size_warning")

    @property
    def tab_width(self) -> int | None:
        """Columns of a tab in source lines (default: 8). Unit: columns."""
        return self._number("tab_width")

    @property
    def terminal_width(self) -> int | None:
        """Columns at which diagnostics wrap (default: the terminal's width, or 80). Unit:
        columns.
        """
        return self._number("terminal_width")

    @property
    def threads(self) -> int | None:
        """Threads of the link itself; 0 uses PYLINK_THREADS or, without that, one for each core
        (default). The result does not depend on it. Unit: threads.
        """
        return self._number("threads")

    @property
    def time(self) -> str | None:
        """Append the time of each compiler run to a CSV file, which is created with a header row. -
        is standard output.
        """
        return self._text("time")

    @property
    def time_trace(self) -> str | None:
        """Write a timeline of the link that Perfetto and chrome://tracing open."""
        return self._text("time_trace")

    @property
    def tool_timeout(self) -> int | None:
        """Stop a compiler that runs longer than this; 0 sets no limit (default: 3600). Unit:
        seconds.
        """
        return self._number("tool_timeout")

    @property
    def use_host_info(self) -> bool:
        """Remove device code that host code does not refer to."""
        return self._flag("use_host_info")

    @property
    def uumn(self) -> bool:
        """Accepted and ignored, as by nvlink."""
        return self._flag("uumn")

    @property
    def variables_used(self) -> tuple[str, ...]:
        """Keep only variables with one of these texts in their names, and those that code uses."""
        return self._list("variables_used")

    @property
    def verbose(self) -> bool:
        """Print the memory and registers that the output uses."""
        return self._flag("verbose")

    @property
    def verbose2(self) -> bool:
        """Accepted and ignored."""
        return self._flag("verbose2")

    @property
    def warning_as_error(self) -> bool:
        """Turn warnings into errors."""
        return self._flag("warning_as_error")

    @property
    def whole_archive(self) -> bool:
        """Link every member of the archives and libraries that come after this option, also with
        --lazy-archives. Includes members that contain cubins, PTX or LTO-IR.
        """
        return self._flag("whole_archive")

    @property
    def wrap_diagnostics(self) -> bool:
        """Break long lines of diagnostics (default on a terminal); text format only."""
        return self._flag("wrap_diagnostics")

    @property
    def write_if_changed(self) -> bool:
        """Do not rewrite an output file whose contents stay the same."""
        return self._flag("write_if_changed")

    @property
    def Xnvvm(self) -> tuple[str, ...]:
        """Options for the compiler of LTO inputs."""
        return self._list("Xnvvm")

    @property
    def Xopt(self) -> tuple[str, ...]:
        """Options in LLVM's spelling: -pass-remarks and its relatives, with one dash.
        -profusededup=true or -profusetwins=true trace how identical sections are found.
        """
        return self._list("Xopt")

    @property
    def Xptxas(self) -> tuple[str, ...]:
        """Options for ptxas, in what this link compiles."""
        return self._list("Xptxas")
