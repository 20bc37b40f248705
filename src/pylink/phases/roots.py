"""Part of merge: the kernels for whose sake code stays."""

from __future__ import annotations

from pylink._native import resolve
from pylink._native.tables import Marks
from pylink.diagnostics.stream import to_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.phases.results import Merged


def select_kernels(merged: Merged) -> Marks:
    """By entity: whether an option or host code names the kernel; empty for all kernels.

    No host code of the link names a kernel of a borrowed module, which stays if code launches it.
    """
    selected = _named_kernels(merged)
    libraries = merged.objects.libraries
    if libraries is None or not libraries.borrowed:
        return selected
    homes = merged.objects.homes
    return resolve.unselected_kernels(
        merged, bytes(home in libraries.borrowed for home in homes), selected
    )


def _named_kernels(merged: Merged) -> Marks:
    objects = merged.objects
    options = objects.job.options
    if objects.job.debug:
        return Marks()  # nvlink does not look at what is selected
    references = objects.references
    if references is not None:
        return resolve.select_referenced(merged, references.external, references.internal)
    if not (options.kernels_used or options.variables_used):
        return Marks()
    return resolve.select_kernels(merged, [to_bytes(name) for name in options.kernels_used])
