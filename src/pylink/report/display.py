"""Metrics that Nsight Compute's tools expect in each action, whatever was measured.

They were found by omitting each metric from a report and opening it with release 2022.3: without a
compute capability every section warns, without a chip number no metric has a unit, without launch
sizes `--print-summary` crashes, and without a time the window shows n/a.
"""

from __future__ import annotations

from pylink.report.model import Action, Dim3, Scope

COMPUTE_CAPABILITY_MAJOR = "device__attribute_compute_capability_major"
COMPUTE_CAPABILITY_MINOR = "device__attribute_compute_capability_minor"
IMPLEMENTATION = "device__attribute_implementation"
# The target of the link, such as sm_100a; only in actions of reports by pylink.
TARGET_ARCH = "link__target_arch"
DISPLAY_NAME = "device__attribute_display_name"
DEVICE_INDEX = "device__attribute_device_index"
GRID_SIZE = "launch__grid_size"
BLOCK_SIZE = "launch__block_size"
# The metric whose value Nsight Compute's window shows as the time of an action.
TIME = "gpu__time_duration.sum"

# The compute capabilities that Nsight Compute 2022.3 knows. For others it warns in every section
# and assumes the oldest.
CAPABILITIES = (40, 43, 50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 89, 90)

# The number of the chip GA100, which every release of Nsight Compute knows. Without a chip, tools
# show no unit of any metric; no metric of a link depends on the chip.
_CHIP = 0x170


def add_display_metrics(
    action: Action, sm: int, device: str, items: int = 1, workers: int = 1
) -> None:
    """Add the metrics that the tools expect and the action does not have yet.

    `sm` is the target's number, such as 86, and `device` its name. The compute capability of a
    target that the tools do not know is the next lower one in `CAPABILITIES`, or the lowest. The
    grid size is `items`, the number of processed things, and the block size `workers`, the number
    of threads. An action that is not a range also gets the two as its launch sizes, if it has none.
    """
    capability = max((number for number in CAPABILITIES if number <= sm), default=CAPABILITIES[0])
    values: dict[str, int | str] = {
        COMPUTE_CAPABILITY_MAJOR: capability // 10,
        COMPUTE_CAPABILITY_MINOR: capability % 10,
        IMPLEMENTATION: _CHIP,
        DISPLAY_NAME: device,
        DEVICE_INDEX: 0,
        GRID_SIZE: items,
        BLOCK_SIZE: workers,
    }
    for name, value in values.items():
        if name not in action.metrics:
            action.set(name, value)
    if action.scope is Scope.RANGE:
        return
    if action.grid_size == Dim3():
        action.grid_size = Dim3(items, 1, 1)
    if action.block_size == Dim3():
        action.block_size = Dim3(workers, 1, 1)
