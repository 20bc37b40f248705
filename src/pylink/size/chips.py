"""The chips of CUDA, and which cubins and PTX a chip can run."""

from __future__ import annotations

from functools import cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from pylink.size.model import Leaf

# Compute capabilities of all GPUs, from NVIDIA's list, as 10 * major + minor. Tegra GPUs run only
# code for exactly their capability, and this code runs on no other GPU.
CAPABILITIES = (
    50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 89, 90, 100, 101, 103, 110, 120, 121,
)  # fmt: skip
TEGRA = (53, 62, 72, 87, 101, 110)


def plain_number(leaf: Leaf, kind: str) -> int:
    """Return the number of the target of a leaf (a range of a file): 90 for `sm_90`.

    0 for a leaf that is not of `kind`, or whose target has a suffix, such as `sm_90a`.
    """
    return _number_of(leaf.target) if leaf.kind == kind else 0


@cache
def _number_of(target: str) -> int:
    """Return 90 for `sm_90` and `compute_90`, 0 for targets with a suffix."""
    number = target.partition("_")[2]
    return int(number) if number.isdigit() else 0


def is_covered(gpu: int, cubins: set[int], *, is_arm: bool) -> bool:
    """Return whether a GPU runs one of the cubins, on an Arm host or another one.

    `gpu` is its capability, such as 90, and `cubins` are the capabilities of the cubins. A GPU runs
    code for its major version and no higher minor version. Hosts of Tegra GPUs are Arm, so on other
    hosts these count like other GPUs.
    """
    if gpu in cubins:
        return True
    if gpu in TEGRA and is_arm:
        return False
    return any(
        cubin // 10 == gpu // 10 and cubin % 10 <= gpu % 10 and cubin not in TEGRA
        for cubin in cubins
    )


def next_choice(number: int, others: Iterable[int], *, is_arm: bool) -> int | None:
    """Return the capability whose cubin a GPU of capability `number` runs if its own cubin is gone.

    `others` are the capabilities of all cubins. None if the GPU runs none of them, and for Tegra.
    """
    if number in TEGRA:
        return None
    fits = [
        other
        for other in others
        if other < number and other not in TEGRA and is_covered(number, {other}, is_arm=is_arm)
    ]
    return max(fits, default=None)
