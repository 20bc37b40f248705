"""What a step writes beside its result: depfiles, and rows of -time."""

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
    """Write a rule of the result, which names all that was read."""
    target = str(request.values.get("depfile_target") or request.named or request.output)
    for file in depfiles(request):
        write_depfile(file, target, step.read, sink)


def depfiles(request: Request) -> list[str]:
    """The files that --depfile names, of which %a makes one for each architecture."""
    paths = []
    for arch in request.archs:
        values = {**request.values, "arch": arch}
        expand_names(values, request.named)
        if values.get("depfile"):
            paths.append(str(values["depfile"]))
    return list(dict.fromkeys(paths))


def write_times(request: Request, step: StepResult, whole: float, sink: Sink) -> None:
    """Rows of -time, by the names that nvcc has for what it starts; the driver is the rest.

    A link of a program has a driver of its own, which is nvcc.
    """
    if request.timings is None:
        return
    inputs = "".join(f"{name} " for name in request.inputs)
    output = request.output or ""
    rows = [("nvlink", inputs, inputs, "", link.arch, link.milliseconds) for link in step.links]
    if step.packing is not None:
        rows.append(("fatbinary", inputs, "", "", "", step.packing))
    if step.finishing is not None:
        rows.append(("gcc (compiling)", inputs, "", output, "", step.finishing))
    # Links run side by side: their times may add up to more than the whole.
    rest = max(0.0, whole - sum(row[-1] for row in rows))
    if not request.links_program:
        rows.append(("nvcc (driver)", "", "", output, "", rest))
    try:
        timing = CsvTiming(request.timings)
        whole_table = timing.whole
        for phase, source, read, to, arch, elapsed in rows:
            whole_table &= timing.row(
                phase,
                source=source,
                inputs=read,
                output=to,
                arch=arch,
                elapsed=elapsed,
                tool="nvcc",
            )
    except OSError:
        whole_table = False
    if not whole_table:
        sink.report("report-incomplete", file=request.timings)
