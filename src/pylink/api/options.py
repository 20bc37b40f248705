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
    """Options that several links have in common; they cannot be changed.

        options = pylink.LinkOptions(verbose=True, error_limit=10)
        pylink.link(["a.cubin"], options, arch="sm_90a")

    Each option is a keyword and an attribute. None stands for an option that is not given, and the
    attribute of one has the value that the link takes it to have: False, an empty tuple, or None
    for what the linker decides. `lto` is another name of `link_time_opt`. `given` has those that
    were given. Objects with the same options are equal.

    Raises TypeError for an unknown option and for a value of a wrong type. Whether a link can be
    done with the values, the link tells.
    """

    __slots__ = ()

    def __init__(self, **keywords: Unpack[LinkKeywords]) -> None:
        self._keep(keywords)

    def replace(self, **keywords: Unpack[LinkKeywords]) -> LinkOptions:
        """The same options but for these."""
        merged = {**self.given, **keywords}
        return LinkOptions(**merged)  # type: ignore[arg-type]  # checked when it is made

    @property
    def allow_empty(self) -> bool:
        """Make an executable without any code of a link without inputs."""
        return self._flag("allow_empty")

    @property
    def allow_missing_libraries(self) -> bool:
        """Go on without libraries that are not found, as nvlink does."""
        return self._flag("allow_missing_libraries")

    @property
    def apply_rules(self) -> str | None:
        """Whether rules look at the report of --profile; they do by default."""
        return self._text("apply_rules")

    @property
    def brief_diagnostics(self) -> bool | None:
        """Print diagnostics without source lines and blank lines; text format only."""
        return self._truth("brief_diagnostics")

    @property
    def color(self) -> str | None:
        """Colour the diagnostics of the text format."""
        return self._text("color")

    @property
    def cpu_arch(self) -> str | None:
        """Architecture of the host, which libraries of -l have to be for; that of this machine
        unless given.
        """
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
    def device_stack_protector(self) -> bool | None:
        """Whether ptxas adds stack canaries to functions at risk, in what this link compiles."""
        return self._truth("device_stack_protector")

    @property
    def diag_error(self) -> tuple[str, ...]:
        """Make errors of these diagnostics."""
        return self._list("diag_error")

    @property
    def diag_log(self) -> str | None:
        """Write a log of all diagnostics, one line each."""
        return self._text("diag_log")

    @property
    def diag_min_severity(self) -> str | None:
        """Drop diagnostics below this severity; the lines of -v and remarks of passes stay."""
        return self._text("diag_min_severity")

    @property
    def diag_once(self) -> tuple[str, ...]:
        """Print each of these diagnostics once at most."""
        return self._list("diag_once")

    @property
    def diag_remark(self) -> tuple[str, ...]:
        """Make remarks of these diagnostics."""
        return self._list("diag_remark")

    @property
    def diag_summary(self) -> bool | None:
        """Print the number of errors at the end, as is done unless given; text format only."""
        return self._truth("diag_summary")

    @property
    def diag_suppress(self) -> tuple[str, ...]:
        """Print none of these diagnostics."""
        return self._list("diag_suppress")

    @property
    def diag_warning(self) -> tuple[str, ...]:
        """Make warnings of these diagnostics."""
        return self._list("diag_warning")

    @property
    def diagnostics_format(self) -> str | None:
        """How diagnostics are printed: in one line as nvlink does, as text with places and source
        lines, or as SARIF.
        """
        return self._text("diagnostics_format")

    @property
    def disable_infos(self) -> bool:
        """Print no info messages, other than what --verbose asks for."""
        return self._flag("disable_infos")

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
        """The same as --link-time-opt."""
        return self._flag("dlto")

    @property
    def dump_callgraph(self) -> bool:
        """Print who calls whom, with registers and entry points."""
        return self._flag("dump_callgraph")

    @property
    def dump_callgraph_no_demangle(self) -> bool:
        """The same with names as they are in the files."""
        return self._flag("dump_callgraph_no_demangle")

    @property
    def edbg(self) -> int | None:
        """Trace the linker: bit 1 prints what --merc-dedup decides, each input and each Mercury
        section that is left out of it, bit 0x20 the time of each phase. Unit: bits.
        """
        return self._number("edbg")

    @property
    def emit_ptx(self) -> bool:
        """Write the PTX of all LTO inputs, and link nothing; needs --dlto."""
        return self._flag("emit_ptx")

    @property
    def error_limit(self) -> int | None:
        """Stop after so many errors; 0, the default, never does. Unit: errors."""
        return self._number("error_limit")

    @property
    def extra_warnings(self) -> bool:
        """Warn about more that may be wrong."""
        return self._flag("extra_warnings")

    @property
    def host_ccbin(self) -> str | None:
        """Name of the host compiler, as nvcc gives it; not needed here."""
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
        """Libraries to link, libNAME.a or with a colon the file of that name, searched in the
        directories of -L and then in those of LIBRARY_PATH.
        """
        return self._list("library")

    @property
    def library_path(self) -> tuple[str, ...]:
        """Directories to search for libraries."""
        return self._list("library_path")

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
        """Most bytes that the compressed device code of all inputs may become; 2147483647 unless
        given. Unit: bytes.
        """
        return self._number("max_uncompressed_size")

    @property
    def maxrregcount(self) -> int | None:
        """Most registers for a function, in what this link compiles. Unit: registers."""
        return self._number("maxrregcount")

    @property
    def merc_dedup(self) -> str | None:
        """Keep one copy of Mercury sections that several objects have alike. On by default; only
        executables for sm_100 and later have anything to leave out.
        """
        return self._text("merc_dedup")

    @property
    def metrics(self) -> tuple[str, ...]:
        """Put these metrics alone into the report of --profile; regex:<expression> for several."""
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
        """The CUDA release whose nvlink the output is that of. Without it the newest that an input
        was made by, at least 13.0.
        """
        return self._text("nvlink_version")

    @property
    def nvvmpath(self) -> str | None:
        """The nvvm directory of the toolkit whose libraries compile LTO inputs. Where these are not
        found, the wheels nvidia-nvjitlink and nvidia-nvvm have them.
        """
        return self._text("nvvmpath")

    @property
    def Ofast_compile(self) -> str | None:
        """Compile LTO inputs faster, for slower programs; needs --dlto."""
        return self._text("Ofast_compile")

    @property
    def output_mode(self) -> str | None:
        """The same as --diagnostics_format."""
        return self._text("output_mode")

    @property
    def pass_remarks(self) -> str | None:
        """Show what the passes whose names match did to the program."""
        return self._text("pass_remarks")

    @property
    def pass_remarks_analysis(self) -> str | None:
        """Show what these passes found out."""
        return self._text("pass_remarks_analysis")

    @property
    def pass_remarks_bitstream_version(self) -> int | None:
        """Version of the container that --pass-remarks-format=bitstream writes: 0 is what LLVM 19
        reads, 1, the default, what LLVM 22 reads. Unit: version.
        """
        return self._number("pass_remarks_bitstream_version")

    @property
    def pass_remarks_filter(self) -> str | None:
        """Write the remarks of these passes alone to the file of --pass-remarks-output."""
        return self._text("pass_remarks_filter")

    @property
    def pass_remarks_format(self) -> str | None:
        """Format of --pass-remarks-output: yaml, the default, or bitstream."""
        return self._text("pass_remarks_format")

    @property
    def pass_remarks_hotness_threshold(self) -> int | None:
        """Leave out remarks that concern fewer bytes. Implies --pass-remarks-with-hotness. Unit:
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
        """Say with each remark how many bytes it concerns."""
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
        """Write how the cost of each routine grows with its input, as a report for aprof. Links all
        inputs, the first half, a quarter and so on again, which takes four to five times as long as
        the link.
        """
        return self._text("profile_aprof")

    @property
    def ptxas_path(self) -> str | None:
        """The ptxas to compile PTX with. By default that of the wheel nvidia-cuda-nvcc, of
        CUDA_HOME, of CUDA_PATH, or the first in PATH.
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
        """Name the target architecture in each message."""
        return self._flag("report_arch")

    @property
    def reproduce(self) -> str | None:
        """Write all that the link reads, and its options, as a .tar.zst, also when it fails;
        `pylink reproduce` links it again.
        """
        return self._text("reproduce")

    @property
    def rule(self) -> tuple[str, ...]:
        """Apply these rules alone to the report of --profile."""
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
        """Where section and rule files are, in place of the stock files and the user's."""
        return self._list("section_folder")

    @property
    def section_folder_recursive(self) -> tuple[str, ...]:
        """The same, with all directories below."""
        return self._list("section_folder_recursive")

    @property
    def set(self) -> tuple[str, ...]:
        """Put these sets of sections into the report of --profile, such as full."""
        return self._list("set")

    @property
    def shared(self) -> bool:
        """The host link makes a shared library, as nvcc says; not needed here."""
        return self._flag("shared")

    @property
    def source_root(self) -> tuple[str, ...]:
        """Where source files are whose lines may be shown, besides the working directory and the
        folders of the inputs; text format only.
        """
        return self._list("source_root")

    @property
    def split_compile(self) -> int | None:
        """Threads that may compile one LTO program; 0 for as many as there are cores. Unit:
        threads.
        """
        return self._number("split_compile")

    @property
    def split_compile_extended(self) -> int | None:
        """The same, for more of the compilation; counts as --split-compile here. Unit: threads."""
        return self._number("split_compile_extended")

    @property
    def suppress_arch_warning(self) -> bool:
        """Do not warn about objects without code for the target."""
        return self._flag("suppress_arch_warning")

    @property
    def suppress_debug_info(self) -> bool:
        """Leave debug data out of the output; needs --debug."""
        return self._flag("suppress_debug_info")

    @property
    def suppress_stack_size_warning(self) -> bool:
        """Do not warn about kernels of unknown stack size."""
        return self._flag("suppress_stack_size_warning")

    @property
    def tab_width(self) -> int | None:
        """Width of tabs in source lines; 8 unless given. Unit: columns."""
        return self._number("tab_width")

    @property
    def terminal_width(self) -> int | None:
        """Where lines of diagnostics break; that of the terminal, else 80, unless given. Unit:
        columns.
        """
        return self._number("terminal_width")

    @property
    def time(self) -> str | None:
        """Append the times of sub-tool runs to a table of comma separated values, which a file that
        does not exist yet gets with column headings. - is standard output.
        """
        return self._text("time")

    @property
    def time_trace(self) -> str | None:
        """Write a timeline of the link that Perfetto and chrome://tracing open."""
        return self._text("time_trace")

    @property
    def tool_timeout(self) -> int | None:
        """Stop a compiler that runs longer; 3600 by default, 0 for no limit. Unit: seconds."""
        return self._number("tool_timeout")

    @property
    def use_host_info(self) -> bool:
        """Remove device code that host code does not refer to."""
        return self._flag("use_host_info")

    @property
    def variables_used(self) -> tuple[str, ...]:
        """Keep only variables with one of these texts in their names, and those that code uses."""
        return self._list("variables_used")

    @property
    def verbose(self) -> bool:
        """Print the memory and registers that the output uses."""
        return self._flag("verbose")

    @property
    def warning_as_error(self) -> bool:
        """Turn warnings into errors."""
        return self._flag("warning_as_error")

    @property
    def whole_archive(self) -> bool:
        """Link every member of the archives and libraries that come after this option: also with
        --lazy-archives, and also members that hold cubins, PTX or LTO-IR.
        """
        return self._flag("whole_archive")

    @property
    def wrap_diagnostics(self) -> bool:
        """Break long lines of diagnostics, as is done on a terminal; text format only."""
        return self._flag("wrap_diagnostics")

    @property
    def write_if_changed(self) -> bool:
        """Leave an output file alone that would get the contents it has."""
        return self._flag("write_if_changed")

    @property
    def Xnvvm(self) -> tuple[str, ...]:
        """Options for the compiler of LTO inputs."""
        return self._list("Xnvvm")

    @property
    def Xopt(self) -> tuple[str, ...]:
        """Options as LLVM spells them: -pass-remarks and its relatives, with one dash, and
        -profusededup=true or -profusetwins=true, which trace how equal sections are found.
        """
        return self._list("Xopt")

    @property
    def Xptxas(self) -> tuple[str, ...]:
        """Options for ptxas, in what this link compiles."""
        return self._list("Xptxas")
