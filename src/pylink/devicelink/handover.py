"""What a step leaves to the nvcc of a toolkit: it is started with the same words."""

from __future__ import annotations

import os
import re
import shlex

from pylink.devicelink.toolkit import AS_NVCC
from pylink.diagnostics.errors import reason_of
from pylink.diagnostics.nvlink import OWN_NAME
from pylink.diagnostics.stream import write
from pylink.options.suggestions import dropped_note, suggest_value
from pylink.subtools.process import run_in_front

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

    from pylink.devicelink.request import NotOurs
    from pylink.devicelink.toolkit import Toolkit
    from pylink.diagnostics import Sink

# nvcc's option for a link without a step.
NO_STEP = "--no-device-link"
ARCHITECTURE = re.compile(r"(?:sm|compute|lto)_[0-9]+[af]?", re.ASCII)
# Set for an nvcc that was started here: what it starts must not come back.
STARTED = "PYLINK_DLINK_HANDED_ON"


def hand_on(
    argv: Sequence[str],
    reason: NotOurs,
    toolkit: Toolkit,
    sink: Sink,
    *,
    shown: bool,
    notes: bool = True,
) -> int:
    """The status of nvcc for these words; a fatal diagnostic where there is none to start.

    With `notes` a line follows what nvcc says of an architecture that CUDA no longer knows.
    """
    option = reason.option or ""
    if toolkit.nvcc is None or os.environ.get(STARTED):
        if reason.file is not None:
            sink.fatal("input-for-nvcc", file=reason.file)
        if arch := _dropped(option):
            sink.fatal("undefined-value", value=arch, option="arch", explain=suggest_value)
        sink.fatal("option-for-nvcc", option=option)
    command = [toolkit.nvcc, *argv]
    if shown:
        write(None, f"#$ {shlex.join(command)}\n")
    try:
        status = run_in_front(command, without_step())
    except OSError as error:
        report_not_started(toolkit.nvcc, error, sink)
    arch = _dropped(option)
    if status and arch and notes:
        write(None, f"{OWN_NAME} note    : {dropped_note(arch)}\n")
    return status


def _dropped(option: str) -> str | None:
    """The architecture in words of -arch or -gencode that CUDA no longer knows by this name."""
    match = ARCHITECTURE.search(option)
    return match[0] if match and dropped_note(match[0]) else None


def without_step() -> dict[str, str]:
    """The environment of an nvcc that must not come back here."""
    return {**os.environ, STARTED: "1"}


def report_no_nvcc(sink: Sink) -> NoReturn:
    """A link of a program is wanted, and there is no nvcc for it."""
    sink.fatal("option-for-nvcc", option=AS_NVCC)


def report_not_started(tool: str, error: OSError, sink: Sink) -> NoReturn:
    sink.fatal("nvcc-not-started", tool=tool, reason=reason_of(error))
