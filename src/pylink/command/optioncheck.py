"""What the options of one link must fulfil together, in the order in which nvlink looks."""

from __future__ import annotations

from pylink.command.optiontable import OPTIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from pylink.command.optiontable import Value
    from pylink.diagnostics import Sink

FAST_COMPILE = ("0", "min", "mid", "max")

# An option, another, whether it is wrong with that (or without it), and the words for both.
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


def check(
    values: Mapping[str, Value],
    sink: Sink,
    *,
    has_inputs: bool,
    needs_output: bool,
    needs_nvvmpath: bool = True,
) -> None:
    """Refuse, with a fatal diagnostic, options that cannot be linked with.

    Without `needs_nvvmpath` the libraries for link-time optimization may be found where they are
    installed.
    """
    arch = values.get("arch")
    if not isinstance(arch, str):
        from pylink.diagnostics.record import note  # noqa: PLC0415 -- an error

        sink.fatal("unknown-arch", arch="(null)", hints=[note("arch-missing")])
    virtual = not arch.startswith("sm_")
    if needs_output and not virtual and values.get("output_file") is None:
        sink.fatal("no-output-file")
    if not (has_inputs or values.get("allow_empty")):
        sink.fatal("no-input-files")
    for one, two, given, option, other in CONFLICTS:
        if values.get(one) and bool(values.get(two)) == given:
            sink.fatal("conflicting-options", option=option, other=other)
    if arch.startswith("lto_"):
        sink.fatal("virtual-target", arch=arch)
    _check_compiling(values, sink, needs_nvvmpath=needs_nvvmpath)
    for row in OPTIONS:
        if not row.built and row.attribute in values:
            sink.fatal("option-not-built", option=f"-{row.short}")
    if virtual:
        sink.fatal("virtual-target-not-built", arch=arch)
    if values.get("use_host_info") and (values.get("kernels_used") or values.get("variables_used")):
        sink.report("host-info-ignored")
    _report_splitting(values, sink)


def _check_compiling(values: Mapping[str, Value], sink: Sink, *, needs_nvvmpath: bool) -> None:
    if not (values.get("link_time_opt") or values.get("dlto")):
        for one, option in (("emit_ptx", "-emit-ptx"), ("Ofast_compile", "--Ofast-compile")):
            if values.get(one):
                sink.fatal("conflicting-options", option=option, other="no -dlto")
    elif needs_nvvmpath and "nvvmpath" not in values:
        sink.fatal("nvvmpath-missing")
    elif values.get("Ofast_compile", "0") not in FAST_COMPILE:
        sink.fatal("invalid-argument", option="--Ofast-compile")
    timeout = values.get("tool_timeout")
    if isinstance(timeout, int) and timeout < 0:
        sink.fatal("invalid-argument", option="--tool-timeout")


def _report_splitting(values: Mapping[str, Value], sink: Sink) -> None:
    """Say which kind of split compilation counts, where it is not the one asked for."""
    extended, plain = "-split-compile-extended", "-split-compile"
    if "split_compile_extended" not in values:
        return
    if values.get("emit_ptx"):
        sink.report("options-incompatible", option="-emit-ptx", other=extended, used=plain)
    elif "split_compile" in values:
        sink.report("options-incompatible", option=plain, other=extended, used=extended)
