"""The keywords of a link with their types, for type checkers.

Generated from the option table: python -m pylink.api.generate.
"""

from __future__ import annotations

from typing import Literal, TypedDict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from pylink.api.inputs import Path


class LinkKeywords(TypedDict, total=False):
    """The options that `link` and `Linker` accept as keywords, beside their own parameters.

    `LinkOptions` describes each. None is the default of an option.
    """

    allow_empty: bool | None
    allow_missing_libraries: bool | None
    apply_rules: Literal["yes", "no"] | None
    brief_diagnostics: bool | None
    color: Literal["auto", "always", "never"] | None
    cpu_arch: Literal["AARCH64", "ARMv7", "PPC64LE", "X86", "X86_64", "unknown"] | None
    debug: bool | None
    depfile: Path | None
    depfile_target: str | None
    device_stack_protector: bool | None
    diag_error: str | Iterable[str] | None
    diag_log: Path | None
    diag_min_severity: Literal["remark", "warning", "error"] | None
    diag_once: str | Iterable[str] | None
    diag_remark: str | Iterable[str] | None
    diag_summary: bool | None
    diag_suppress: str | Iterable[str] | None
    diag_warning: str | Iterable[str] | None
    diagnostics_format: Literal["nvlink", "text", "sarif"] | None
    disable_infos: bool | None
    disable_smem_reservation: bool | None
    disable_warnings: bool | None
    display_error_number: bool | None
    dlto: bool | None
    dump_callgraph: bool | None
    dump_callgraph_no_demangle: bool | None
    edbg: int | None
    emit_ptx: bool | None
    error_limit: int | None
    extra_warnings: bool | None
    force_partial_lto: bool | None
    force_whole_lto: bool | None
    host_ccbin: str | None
    ignore_host_info: bool | None
    keep_system_libraries: bool | None
    kernels_used: str | Iterable[str] | None
    lazy_archives: bool | None
    library: str | Iterable[str] | None
    library_path: Path | Iterable[Path] | None
    link_as_tools_patch: bool | None
    link_time_opt: bool | None
    lto: bool | None
    machine: Literal[64] | None
    Map: Path | None
    max_uncompressed_size: int | None
    maxrregcount: int | None
    merc_dedup: Literal["on", "off"] | None
    metrics: str | Iterable[str] | None
    no_source_context: bool | None
    no_wrap_diagnostics: bool | None
    nvlink_version: (
        Literal[
            "12.9", "13.0", "13.1", "13.2", "13.2.51", "13.2.78", "13.2.86", "13.3", "13.4", "13.5"
        ]
        | None
    )
    nvvm_latest: bool | None
    nvvmpath: Path | None
    Ofast_compile: str | None
    output_mode: Literal["nvlink", "text", "sarif"] | None
    pass_remarks: str | None
    pass_remarks_analysis: str | None
    pass_remarks_bitstream_version: Literal[0, 1] | None
    pass_remarks_filter: str | None
    pass_remarks_format: str | None
    pass_remarks_hotness_threshold: int | None
    pass_remarks_missed: str | None
    pass_remarks_output: Path | None
    pass_remarks_why_live: str | None
    pass_remarks_with_hotness: bool | None
    preserve_relocs: bool | None
    profile: bool | Path | None
    profile_aprof: Path | None
    ptxas_path: Path | None
    register_link_binaries: Path | None
    relocatable_link: bool | None
    report_arch: bool | None
    reproduce: Path | None
    rule: str | Iterable[str] | None
    sarif_output: Path | None
    section: str | Iterable[str] | None
    section_folder: Path | Iterable[Path] | None
    section_folder_recursive: Path | Iterable[Path] | None
    set: str | Iterable[str] | None
    shared: bool | None
    source_root: Path | Iterable[Path] | None
    split_compile: int | None
    split_compile_extended: int | None
    suppress_arch_warning: bool | None
    suppress_debug_info: bool | None
    suppress_stack_size_warning: bool | None
    tab_width: int | None
    terminal_width: int | None
    threads: int | None
    time: Path | None
    time_trace: Path | None
    tool_timeout: int | None
    use_host_info: bool | None
    uumn: bool | None
    variables_used: str | Iterable[str] | None
    verbose: bool | None
    verbose2: bool | None
    warning_as_error: bool | None
    whole_archive: bool | None
    wrap_diagnostics: bool | None
    write_if_changed: bool | None
    Xnvvm: str | Iterable[str] | None
    Xopt: str | Iterable[str] | None
    Xptxas: str | Iterable[str] | None
