"""From options to a sink: severities by number or name, and the renderers of each format."""

from __future__ import annotations

from pylink.diagnostics.kinds import KINDS
from pylink.diagnostics.nvlink import NvlinkRenderer
from pylink.diagnostics.policy import ACTIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

    from pylink.diagnostics.sink import Renderer, Sink

FORMATS = ("nvlink", "text", "sarif")


def find_kind(value: str) -> str | None:
    """The kind a number (`501`, also `501-D` and `EC501`) or a name stands for."""
    if value in KINDS:
        return value
    digits = value.removeprefix("EC").removesuffix("-D")
    if not (digits.isascii() and digits.isdigit()):
        return None
    # The length bounds what int() is asked to convert; no number of ours has more digits.
    number = int(digits) if len(digits) < 10 else 0
    return next((kind for kind, row in KINDS.items() if row[0] == number), None)


def control(sink: Sink, action: str, values: str) -> None:
    """Do what `--diag-<action>=values` says, for numbers and names separated by commas.

    The actions are suppress, remark, warning, error, once and default. A value that names no
    diagnostic is a fatal diagnostic itself; a hard error keeps its severity without a word.
    """
    for value in values.split(","):
        kind = find_kind(value.strip())
        if kind is None:
            sink.fatal("unknown-diagnostic", value=value)
        if action == "once":
            sink.policy.once.add(kind)
        elif action == "default":
            sink.policy.restore(kind)
        else:
            sink.policy.assign(kind, ACTIONS[action])


def make_renderer(
    format: str,
    stream: TextIO | None = None,
    *,
    tool: str = "pylink",
    target: str | None = None,
    coloured: str = "auto",
    numbers: bool = False,
    width: int = 80,
    subject: str | None = None,
) -> Renderer:
    """The renderer of a format, one of `FORMATS`; ValueError for another.

    `stream` None is the standard error of each moment, `target` what -report-arch appends,
    `coloured` one of auto, always and never, `width` the terminal's columns (0: do not wrap),
    `subject` the file that the summary names. A format uses what it has a place for.
    """
    if format == "nvlink":
        return NvlinkRenderer(stream, tool=tool, target=target)
    if format == "text":
        import sys  # noqa: PLC0415

        from pylink.diagnostics.colour import is_wanted  # noqa: PLC0415
        from pylink.diagnostics.text import TextRenderer  # noqa: PLC0415

        return TextRenderer(
            stream,
            coloured=is_wanted(coloured, sys.stderr if stream is None else stream),
            width=width,
            numbers=numbers,
            subject=subject,
            target=target,
        )
    if format == "sarif":
        from pylink.diagnostics.sarif import SarifStream  # noqa: PLC0415

        return SarifStream(stream)
    raise ValueError(f"no diagnostics format {format!r}")


def add_log(sink: Sink, path: str) -> None:
    """Write the log to a file as well; a fatal diagnostic when it cannot be opened."""
    from pylink.diagnostics.log import LogRenderer  # noqa: PLC0415

    sink.renderers.append(LogRenderer(_open(sink, path), path))


def add_sarif_output(sink: Sink, path: str, *, subject: str | None = None) -> None:
    """Write a SARIF document to a file as well; a fatal diagnostic when it cannot be opened."""
    from pylink.diagnostics.sarif_document import SarifDocument  # noqa: PLC0415

    sink.renderers.append(SarifDocument(_open(sink, path), path, subject=subject))


def _open(sink: Sink, path: str) -> TextIO:
    try:
        return open(path, "w", encoding="utf-8", newline="\n")
    except (OSError, ValueError):
        sink.fatal("cannot-open-file", file=path)
