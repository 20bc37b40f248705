"""Reports of a step: depfiles and rows of -time."""

from __future__ import annotations

from pylink.options.filenames import expand_names
from pylink.outputs.depfile import write_depfile
from pylink.timing import CsvTiming

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.devicelink.request import Request
    from pylink.devicelink.result import StepResult
    from pylink.diagnostics import Sink


def write_depfiles(request: Request, step: StepResult, sink: Sink) -> None:
    """Write depfiles with a rule that names all files that the step read."""
    target = str(request.values.get("depfile_target") or request.report_name or request.output)
    for file in _list_depfiles(request):
        write_depfile(file, target, step.files_read, sink)


def _list_depfiles(request: Request) -> list[str]:
    """Return the files of --depfile; with %a one for each architecture."""
    paths = []
    for arch in request.archs:
        values = {**request.values, "arch": arch}
        expand_names(values, request.report_name)
        if values.get("depfile"):
            paths.append(str(values["depfile"]))
    return list(dict.fromkeys(paths))


def write_times(request: Request, step: StepResult, total: float, sink: Sink) -> None:
    """Write rows of -time with nvcc's names for the parts of the step.

    The driver's row has what remains of `total`, the milliseconds of the step. It is omitted if
    nvcc links a program afterwards, since nvcc then writes a row for its own driver.
    """
    if request.timings is None:
        return
    inputs = "".join(f"{name} " for name in request.inputs)
    output = request.output or ""
    # Phase, sources, inputs, output, architecture, milliseconds.
    rows = [("nvlink", inputs, inputs, "", link.arch, link.link_ms) for link in step.links]
    if step.packing_ms is not None:
        rows.append(("fatbinary", inputs, "", "", "", step.packing_ms))
    if step.finishing_ms is not None:
        rows.append(("gcc (compiling)", inputs, "", output, "", step.finishing_ms))
    # Links run in parallel: the sum of their times may exceed the total.
    driver_time = max(0.0, total - sum(row[-1] for row in rows))
    if not request.links_program:
        rows.append(("nvcc (driver)", "", "", output, "", driver_time))
    try:
        timing = CsvTiming(request.timings)
        is_complete = timing.complete
        for phase, source, read, target, arch, elapsed in rows:
            is_complete &= timing.add_row(
                phase,
                source=source,
                inputs=read,
                output=target,
                arch=arch,
                elapsed=elapsed,
                tool="nvcc",
            )
    except OSError:
        is_complete = False
    if not is_complete:
        sink.report("report-incomplete", file=request.timings)
