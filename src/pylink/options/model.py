"""The options of one link, frozen, and its inputs."""

from __future__ import annotations

from pylink.facts.releases import BY_NAME
from pylink.options.table import ALWAYS, DEBUG, FLAG, OPTIONS, TRUTH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import NoReturn

    from pylink.inputs.sources import Library
    from pylink.options.table import Value


class Input:
    """One input: the name for diagnostics, and the bytes, None for a file that is not read yet.

    `path` is the file that `data` was read from, if it has another name in diagnostics.
    `whole_archive` says that every member of an archive is linked. `skipped` is the value of -l
    for which nvlink would not take this archive, None if it would. `library` describes a shared
    library that -l found; `data` is then None if the link may take code from it, else its header.
    """

    __slots__ = ("data", "library", "name", "path", "skipped", "whole_archive")

    def __init__(
        self,
        name: str,
        data: bytes | None = None,
        *,
        path: str | None = None,
        skipped: str | None = None,
        whole_archive: bool = False,
        library: Library | None = None,
    ) -> None:
        self.name = name
        self.data = data
        self.library = library
        self.path = path
        self.skipped = skipped
        self.whole_archive = whole_archive

    def __repr__(self) -> str:
        return f"<Input {self.name}>"


class Options:
    """The value of every option, under its long name with underscores; immutable.

    `recorded` is the options field of `.note.nv.tkinfo` (the tool note), `recorded_output` the name
    of the output in it, empty without -g. `compiles` says that PTX and LTO-IR are compiled; without
    it they are an error. `allows_no_code` permits inputs without code for this target. `subject` is
    the name of the result in reports. `nvlink` names the release of nvlink to follow, as in
    `pylink.facts.releases`: the value of `nvlink_version`, else the release of the toolkit whose
    linker pylink replaces, else None. `follows` is its release of CUDA, without a patch level.

    The annotations below are the options that code reads from this object. The command line handles
    the others.
    """

    __slots__ = (
        *(option.attribute for option in OPTIONS),
        "allows_no_code",
        "compiles",
        "follows",
        "nvlink",
        "recorded",
        "recorded_output",
        "subject",
    )

    allow_missing_libraries: bool
    allows_no_code: bool
    apply_rules: str | None
    arch: str
    cpu_arch: str | None
    color: str | None
    compiles: bool
    debug: bool
    device_stack_protector: bool | None
    depfile: str | None
    depfile_target: str | None
    disable_smem_reservation: bool | None
    dlto: bool
    dump_callgraph: bool
    dump_callgraph_no_demangle: bool
    edbg: int | None
    emit_ptx: bool
    follows: str | None
    force_partial_lto: bool
    force_whole_lto: bool
    ignore_host_info: bool
    keep_system_libraries: bool
    kernels_used: tuple[str, ...]
    lazy_archives: bool
    library: tuple[str, ...]
    library_path: tuple[str, ...]
    link_as_tools_patch: bool
    link_time_opt: bool
    list_rules: bool
    list_sections: bool
    list_sets: bool
    Map: str | None
    maxrregcount: int | None
    max_uncompressed_size: int | None
    merc_dedup: str | None
    nvlink: str | None
    nvlink_version: str | None
    nvvm_latest: bool
    nvvmpath: str | None
    Ofast_compile: str | None
    options_file: tuple[str, ...]
    output_file: str | None
    subject: str | None
    extra_warnings: bool
    preserve_relocs: bool
    profile: str | None
    profile_aprof: str | None
    ptxas_path: str | None
    recorded: str
    recorded_output: str
    register_link_binaries: str | None
    relocatable_link: bool
    reproduce: str | None
    metrics: tuple[str, ...]
    rule: tuple[str, ...]
    section: tuple[str, ...]
    section_folder: tuple[str, ...]
    section_folder_recursive: tuple[str, ...]
    set: tuple[str, ...]
    shared: bool
    source_root: tuple[str, ...]
    split_compile: int | None
    split_compile_extended: int | None
    suppress_arch_warning: bool
    suppress_debug_info: bool
    suppress_stack_size_warning: bool
    time: str | None
    time_trace: str | None
    threads: int | None
    tool_timeout: int | None
    variables_used: tuple[str, ...]
    verbose: bool
    whole_archive: bool
    write_if_changed: bool
    Xnvvm: tuple[str, ...]
    Xopt: tuple[str, ...]
    Xptxas: tuple[str, ...]

    def __init__(
        self,
        values: Mapping[str, Value],
        inputs: Sequence[str] = (),
        *,
        compiles: bool = True,
        allows_no_code: bool = False,
        noted: tuple[str, str] | None = None,
        toolkit: str | None = None,
        subject: str | None = None,
    ) -> None:
        """Store `values` by attribute; `inputs` are the names that -g records.

        `noted` has the output and the options for the tool note, if the link is reproduced.

        `toolkit` is the release of the toolkit whose linker pylink replaces. `subject` is the name
        of the result in reports (default: the output file).
        """
        store = object.__setattr__
        for option in OPTIONS:
            store(self, option.attribute, values.get(option.attribute, option.default))
        store(self, "compiles", compiles)
        store(self, "subject", subject or self.output_file)
        store(self, "allows_no_code", allows_no_code)
        requested = values.get("nvlink_version") or toolkit
        store(self, "nvlink", requested)
        store(self, "follows", BY_NAME[requested].release if requested in BY_NAME else requested)
        output, text = noted or (note_output(values), note_text(values, inputs))
        store(self, "recorded", text)
        store(self, "recorded_output", output)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"options are frozen: {name}")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"options are frozen: {name}")


def note_output(values: Mapping[str, Value]) -> str:
    """Return the name of the output for the tool note: with -g its file, else empty."""
    return str(values.get("output_file") or "") if values.get("debug") else ""


def note_text(values: Mapping[str, Value], inputs: Sequence[str]) -> str:
    """Return the options for the tool note: `-name value ` for each, `-name  ` for a flag.

    They are in order of the table, not of the command line. -g adds the inputs, and the options
    whose `recorded` is DEBUG, such as the output.
    """
    parts = []
    debug = bool(values.get("debug"))
    if debug:
        parts.append(",".join(inputs) + " ")
    for option in OPTIONS:
        if option.attribute not in values:
            continue
        if option.recorded != ALWAYS and not (debug and option.recorded == DEBUG):
            continue
        value = values[option.attribute]
        if option.takes == FLAG or option.attribute == "options_file":
            text = ""
        elif isinstance(value, tuple):
            text = ",".join(value)
        elif option.takes == TRUTH:
            text = "true" if value else "false"
        else:
            text = str(value)
        parts.append(f"-{option.short} {text} ")
    return "".join(parts)
