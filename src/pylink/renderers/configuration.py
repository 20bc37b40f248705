"""Configures the sink, to which diagnostics are reported, from options: severities, renderers."""

from __future__ import annotations

import sys

from pylink.diagnostics.nvlink import NVLINK, NvlinkRenderer
from pylink.diagnostics.policy import ACTIONS, Policy
from pylink.diagnostics.sink import Renderer
from pylink.diagnostics.stream import is_terminal
from pylink.options.table import FORMATS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import TextIO

    from pylink.diagnostics.nvlink import Notes
    from pylink.diagnostics.record import Diagnostic
    from pylink.diagnostics.sink import Sink
    from pylink.diagnostics.sourcefiles import SourceFiles
    from pylink.renderers.presentation import Presentation

# Options of nvlink that suppress one kind of diagnostic, and the kind.
_SUPPRESSING = (
    ("suppress_stack_size_warning", "stack-size"),
    ("suppress_arch_warning", "arch-not-found"),
)


def find_kind(value: str) -> str | None:
    """Return the kind with this name or number (`501`, `501-D` or `EC501`); None if unknown."""
    from pylink.diagnostics.kinds import KINDS

    if value in KINDS:
        return value
    digits = value.removeprefix("EC").removesuffix("-D")
    if not (digits.isascii() and digits.isdigit()):
        return None
    # int() refuses very long numbers. No number has ten digits, and no kind has number 0.
    number = int(digits) if len(digits) < 10 else 0
    return next((kind for kind, row in KINDS.items() if row[0] == number), None)


def set_severity(sink: Sink, action: str, values: str) -> None:
    """Apply `--diag-<action>=values`: numbers and names separated by commas.

    The actions are suppress, remark, warning, error, once and default. An unknown name or number is
    a fatal diagnostic. A kind more severe than DISCRETIONARY silently keeps its severity.
    """
    for value in values.split(","):
        kind = find_kind(value.strip())
        if kind is None:
            from pylink.options.suggestions import suggest_kind

            sink.fatal("unknown-diagnostic", value=value, explain=suggest_kind)
        if action == "once":
            sink.policy.once.add(kind)
        elif action == "default":
            sink.policy.restore(kind)
        else:
            sink.policy.assign(kind, ACTIONS[action])


def configure_sink(
    sink: Sink,
    values: Mapping[str, object],
    *,
    inputs: Iterable[str] = (),
    stream: TextIO | None = None,
    tool: str = "pylink",
    terminal_form: str = "nvlink",
    notes: Notes = None,
) -> None:
    """Give a sink the policy and the renderers that option values ask for.

    `values` maps long option names with underscores to their values; absent ones have nvlink's
    default. But the default format is `terminal_form` on a terminal, and `notes` is used if --notes
    is not given. Source files are looked for beside the files `inputs`. The renderer of the format
    replaces the sink's renderers and writes to `stream` (None: standard error). `tool` is the first
    word of lines in nvlink's format. An unknown diagnostic in an option is a fatal error;
    ValueError for an unknown format.
    """
    form = str(values.get("diagnostics_format") or values.get("output_mode") or "")
    if not form:
        use_terminal_form = terminal_form != "nvlink" and is_terminal(
            sys.stderr if stream is None else stream
        )
        form = terminal_form if use_terminal_form else "nvlink"
    if form not in FORMATS:
        raise ValueError(f"no diagnostics format {form!r}")
    sink.policy = Policy(
        no_warnings=bool(values.get("disable_warnings")),
        warnings_as_errors=bool(values.get("warning_as_error")),
        no_infos=bool(values.get("disable_infos")),
        error_limit=_number(values, "error_limit", 0),
        numbers=bool(values.get("display_error_number")),
        threshold=ACTIONS[_text(values, "diag_min_severity") or "remark"],
        as_nvlink=form == "nvlink",
        in_nvlinks_place=form == "nvlink" and tool == NVLINK,
    )
    if values.get("notes") is not None:
        notes = values["notes"] == "yes"
    if form == "nvlink":
        renderer = NvlinkRenderer(stream, tool=tool, target=_target(values), notes=notes)
        sink.renderers = [renderer]
    else:
        sink.renderers = [LazyRenderer(lambda: _create_renderer(form, stream, values, inputs))]
    for option, kind in _SUPPRESSING:
        if values.get(option):
            set_severity(sink, "suppress", kind)
    for action in (*ACTIONS, "once"):
        kind_lists = values.get(f"diag_{action}") or ()
        assert isinstance(kind_lists, (str, tuple))
        for kinds in (kind_lists,) if isinstance(kind_lists, str) else kind_lists:
            set_severity(sink, action, kinds)


def open_reports(sink: Sink, values: Mapping[str, object]) -> None:
    """Give a sink the renderers that write files; a file that cannot be opened is fatal.

    Call this only after the output plan has checked that none of these files is an input.
    """
    log_path, sarif_path = _text(values, "diag_log"), _text(values, "sarif_output")
    target = _text(values, "arch")
    if log_path is not None:
        add_log(sink, log_path, target=target)
    if sarif_path is not None:
        subject = _text(values, "output_file")
        add_sarif_output(sink, sarif_path, subject=subject, target=target)


def source_files(values: Mapping[str, object], inputs: Iterable[str]) -> SourceFiles:
    """Return the source files whose lines diagnostics may show.

    `values` maps option names to values, as in `configure_sink`; `inputs` are names of input files.
    """
    from pylink.diagnostics.sourcefiles import SourceFiles

    return SourceFiles(
        _texts(values, "source_root"), inputs=inputs, directories=_texts(values, "library_path")
    )


def _create_renderer(
    form: str, stream: TextIO | None, values: Mapping[str, object], inputs: Iterable[str]
) -> Renderer:
    """Create the renderer of the form of diagnostics `form`, sarif or text."""
    if form == "sarif":
        from pylink.renderers.sarif import SarifStream

        return SarifStream(stream)
    from pylink.renderers.text import TextRenderer

    presentation = _read_presentation(values, stream)
    return TextRenderer(stream, presentation, sources=source_files(values, inputs))


def _read_presentation(values: Mapping[str, object], stream: TextIO | None) -> Presentation:
    """Return the presentation of records on `stream` (None: standard error), from option values."""
    from pylink.renderers.presentation import TAB_WIDTH, Presentation

    return Presentation(
        color=_text(values, "color") or "auto",
        numbers=bool(values.get("display_error_number")),
        width=_usable_columns(values, stream) if _is_wrapping_wanted(values, stream) else 0,
        tab_width=_number(values, "tab_width", TAB_WIDTH),
        context=not values.get("no_source_context"),
        brief=bool(values.get("brief_diagnostics")),
        summary=values.get("diag_summary") is not False,
        subject=_text(values, "output_file"),
        target=_target(values),
    )


def _is_wrapping_wanted(values: Mapping[str, object], stream: TextIO | None) -> bool:
    """Return whether to wrap lines (default: on a terminal; in files, names stay in one line)."""
    if values.get("no_wrap_diagnostics"):
        return False
    is_requested = values.get("wrap_diagnostics") or values.get("terminal_width")
    return bool(is_requested) or is_terminal(sys.stderr if stream is None else stream)


def _usable_columns(values: Mapping[str, object], stream: TextIO | None) -> int:
    """Return the value of --terminal-width, else the terminal's width in columns, else WIDTH."""
    from pylink.renderers.presentation import terminal_columns

    option_width = _number(values, "terminal_width", 0)
    if option_width > 0:
        return option_width
    return terminal_columns(sys.stderr if stream is None else stream)


class LazyRenderer(Renderer):
    """Creates the real renderer at the first diagnostic; a link without any never loads it."""

    def __init__(self, create: Callable[[], Renderer]) -> None:
        self._create = create
        self._renderer: Renderer | None = None
        self._target: str | None = None

    def for_target(self, target: str | None) -> None:
        """Keep the architecture that later records name; `emit` passes it on if it is not None."""
        self._target = target

    def emit(self, diagnostic: Diagnostic) -> None:
        if self._renderer is None:
            self._renderer = self._create()
        if self._target is not None:
            self._renderer.for_target(self._target)
        self._renderer.emit(diagnostic)

    def close(self, sink: Sink) -> None:
        if self._renderer is not None:
            self._renderer.close(sink)


def _target(values: Mapping[str, object]) -> str | None:
    """Return the architecture that each message names, None without -report-arch."""
    return _text(values, "arch") if values.get("report_arch") else None


def _number(values: Mapping[str, object], option: str, default: int) -> int:
    """Return the value of a number option, or the default."""
    value = values.get(option)
    return value if isinstance(value, int) else default


def _texts(values: Mapping[str, object], option: str) -> tuple[str, ...]:
    """Return the values of a list option."""
    value = values.get(option) or ()
    assert isinstance(value, tuple)
    return value


def _text(values: Mapping[str, object], option: str) -> str | None:
    """Return the value of a text option, or None."""
    value = values.get(option)
    return value if isinstance(value, str) else None


def add_log(sink: Sink, path: str, *, target: str | None = None) -> None:
    """Write the log to a file as well; a fatal diagnostic if it cannot be opened.

    `target` is the architecture, which ends the first line of each record.
    """
    from pylink.files.atomic import open_output
    from pylink.renderers.log import LogRenderer

    sink.renderers.append(LogRenderer(open_output(path, sink), target=target))


def add_sarif_output(
    sink: Sink, path: str, *, subject: str | None = None, target: str | None = None
) -> None:
    """Write a SARIF document to a file as well; a fatal diagnostic if it cannot be opened.

    `subject` is the file of records without a location, and `target` the architecture.
    """
    from pylink.files.atomic import open_output
    from pylink.renderers.sarif_document import SarifDocument

    sink.renderers.append(SarifDocument(open_output(path, sink), subject=subject, target=target))
