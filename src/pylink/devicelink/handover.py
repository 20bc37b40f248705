"""Starts the nvcc of a toolkit with the same arguments, for steps that only nvcc can do."""

from __future__ import annotations

import os
import re
import shlex

from pylink.devicelink.toolkit import AS_NVCC
from pylink.diagnostics.errors import reason_of
from pylink.diagnostics.nvlink import OWN_NAME
from pylink.diagnostics.stream import write
from pylink.options.suggestions import dropped_note, suggest_value
from pylink.subtools.process import run_attached

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

    from pylink.devicelink.request import LeftToNvcc
    from pylink.devicelink.toolkit import Toolkit
    from pylink.diagnostics import Sink

# Option of nvcc for a link without a device-link step.
NO_STEP = "--no-device-link"
ARCHITECTURE = re.compile(r"(?:sm|compute|lto)_[0-9]+[af]?", re.ASCII)
# The variable is set for an nvcc that pylink starts. If this nvcc starts `pylink dlink`, that does
# not start nvcc again.
STARTED_VARIABLE = "PYLINK_DLINK_HANDED_ON"


def start_nvcc(
    argv: Sequence[str],
    reason: LeftToNvcc,
    toolkit: Toolkit,
    sink: Sink,
    *,
    shows_command: bool,
    notes: bool = True,
) -> int:
    """Run nvcc with these arguments and return its status; a fatal diagnostic without an nvcc.

    It is also fatal if nvcc cannot be started, or if an nvcc that pylink started calls this.
    `reason` says which option or file only nvcc knows. With `shows_command` the command is printed
    first. With `notes` a note follows the error of nvcc about an architecture that CUDA has dropped
    or renamed.
    """
    option = reason.option or ""
    if toolkit.nvcc is None or os.environ.get(STARTED_VARIABLE):
        if reason.file is not None:
            sink.fatal("input-for-nvcc", file=reason.file)
        if arch := _find_dropped_arch(option):
            sink.fatal("undefined-value", value=arch, option="arch", explain=suggest_value)
        sink.fatal("option-for-nvcc", option=option)
    command = [toolkit.nvcc, *argv]
    if shows_command:
        write(None, f"#$ {shlex.join(command)}\n")
    try:
        status = run_attached(command, nvcc_environment())
    except OSError as error:
        report_not_started(toolkit.nvcc, error, sink)
    arch = _find_dropped_arch(option)
    if status and arch and notes:
        write(None, f"{OWN_NAME} note    : {dropped_note(arch)}\n")
    return status


def _find_dropped_arch(option: str) -> str | None:
    """Return the first architecture in an option; None without one that CUDA dropped or renamed."""
    match = ARCHITECTURE.search(option)
    return match[0] if match and dropped_note(match[0]) else None


def nvcc_environment() -> dict[str, str]:
    """Return the environment for an nvcc, with the variable that keeps it from starting another."""
    return {**os.environ, STARTED_VARIABLE: "1"}


def report_no_nvcc(sink: Sink) -> NoReturn:
    """Report that nvcc, which must link the program, was not found."""
    sink.fatal("option-for-nvcc", option=AS_NVCC)


def report_not_started(tool: str, error: OSError, sink: Sink) -> NoReturn:
    sink.fatal("nvcc-not-started", tool=tool, reason=reason_of(error))
