"""Checks the options of one link together, in nvlink's order."""

from __future__ import annotations

from pylink.options.table import OPTIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from pylink.diagnostics import Sink
    from pylink.options.table import Value

# Values of --Ofast-compile.
FAST_COMPILE_VALUES = ("0", "min", "mid", "max")

# Conflicts: an option, a second one, whether the second must be absent (True) or present (False)
# beside the first, and the words of the message for the first and for what it conflicts with.
CONFLICTS = (
    ("suppress_debug_info", "debug", False, "-suppress-debug-info", "no -g"),
    (
        "dump_callgraph",
        "dump_callgraph_no_demangle",
        True,
        "-dump-callgraph",
        "-dump-callgraph-no-demangle",
    ),
    ("use_host_info", "ignore_host_info", True, "-use-host-info", "-ignore-host-info"),
)

# Options whose number must not be negative, with their spelling in the message.
COUNT_OPTIONS = (("threads", "--threads"), ("tool_timeout", "--tool-timeout"))

# Options that need link-time optimization, with nvlink's spelling.
LTO_OPTIONS = (
    ("force_partial_lto", "-force-partial-lto"),
    ("force_whole_lto", "-force-whole-lto"),
    ("nvvm_latest", "-nvvm-latest"),
    ("emit_ptx", "-emit-ptx"),
    ("Ofast_compile", "--Ofast-compile"),
)


def check(
    values: Mapping[str, Value],
    sink: Sink,
    *,
    has_inputs: bool,
    needs_output: bool,
    needs_nvvmpath: bool = True,
    toolkit: str | None = None,
    spellings: Mapping[str, str] | None = None,
) -> None:
    """Refuse, with a fatal diagnostic, options that a link cannot use; report ignored ones.

    `has_inputs` says that there are inputs besides -l, `needs_output` that -o is required.
    `toolkit` is the release of the toolkit whose linker pylink replaces. `spellings` says, by
    attribute, how the user spelled options that not all releases have. Without `needs_nvvmpath` a
    link with link-time optimization may lack --nvvmpath: it uses the installed libraries.
    """
    release = values.get("nvlink_version") or toolkit
    if release is not None:
        _check_release(values, str(release), spellings or {}, sink)
    arch = values.get("arch")
    if not isinstance(arch, str):
        from pylink.diagnostics.record import note

        sink.fatal("unknown-arch", arch="(null)", hints=[note("arch-missing")])
    is_virtual = not arch.startswith("sm_")
    if needs_output and not is_virtual and values.get("output_file") is None:
        sink.fatal("no-output-file")
    if not (has_inputs or values.get("allow_empty")):
        sink.fatal("no-input-files")
    for first, second, must_be_absent, option, other in CONFLICTS:
        if values.get(first) and bool(values.get(second)) == must_be_absent:
            sink.fatal("conflicting-options", option=option, other=other)
    if arch.startswith("lto_"):
        sink.fatal("virtual-target", arch=arch)
    _check_compiling(values, sink, needs_nvvmpath=needs_nvvmpath)
    _check_counts(values, sink)
    for row in OPTIONS:
        if not row.built and row.attribute in values:
            sink.fatal("option-not-built", option=f"-{row.short}")
    if is_virtual:
        sink.fatal("virtual-target-not-built", arch=arch)
    if values.get("use_host_info") and (values.get("kernels_used") or values.get("variables_used")):
        sink.report("host-info-ignored")
    _report_split_compile(values, sink)


def _check_release(
    values: Mapping[str, Value], release: str, spellings: Mapping[str, str], sink: Sink
) -> None:
    """Refuse options that nvlink of the requested release does not know."""
    from pylink.facts.releases import BY_NAME

    for row in OPTIONS:
        if (
            row.since
            and row.attribute in values
            and BY_NAME[release].toolkit < BY_NAME[row.since].toolkit
        ):
            from pylink.diagnostics.record import note

            name = spellings.get(row.attribute, f"--{row.long}")
            hint = note("option-since", option=name, since=row.since, release=release)
            sink.fatal("unknown-option", option=name[1:], hints=[hint])


def _check_counts(values: Mapping[str, Value], sink: Sink) -> None:
    """Refuse a count below 0, with a fatal diagnostic."""
    for attribute, option in COUNT_OPTIONS:
        count = values.get(attribute)
        if isinstance(count, int) and count < 0:
            sink.fatal("invalid-argument", option=option)


def _check_compiling(values: Mapping[str, Value], sink: Sink, *, needs_nvvmpath: bool) -> None:
    """Check the options of link-time optimization (LTO).

    Refuses them without -dlto or -lto, LTO without a required --nvvmpath, contradictions, and an
    unknown value of --Ofast-compile.
    """
    partial = values.get("force_partial_lto") or values.get("relocatable_link")
    if not (values.get("link_time_opt") or values.get("dlto")):
        for attribute, option in LTO_OPTIONS:
            if values.get(attribute):
                sink.fatal("conflicting-options", option=option, other="no -dlto")
    elif needs_nvvmpath and "nvvmpath" not in values:
        sink.fatal("nvvmpath-missing")
    elif values.get("force_whole_lto") and partial:
        sink.fatal("conflicting-options", option="-force-partial-lto", other="-force-whole-lto")
    elif values.get("Ofast_compile", "0") not in FAST_COMPILE_VALUES:
        sink.fatal("invalid-argument", option="--Ofast-compile")


def _report_split_compile(values: Mapping[str, Value], sink: Sink) -> None:
    """Report which option of split compilation is used, if options conflict."""
    extended, plain = "-split-compile-extended", "-split-compile"
    if "split_compile_extended" not in values:
        return
    if values.get("emit_ptx"):
        sink.report("options-incompatible", option="-emit-ptx", other=extended, used=plain)
    elif "split_compile" in values:
        sink.report("options-incompatible", option=plain, other=extended, used=extended)
