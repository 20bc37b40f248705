"""The rules of an audit: each finding is reported with its cause and the build step that helps."""

from __future__ import annotations

from collections import Counter
from functools import partial

from pylink.audit.kernels import DeviceCode, decode_name, find_shared_kernels, find_shared_variables
from pylink.audit.registration import simulate
from pylink.audit.remedies import Remedies
from pylink.audit.targets import architectures, has_code_for, unused_relocatable
from pylink.diagnostics.record import note

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pylink.audit.launchers import Launcher
    from pylink.audit.model import LinkedFile
    from pylink.audit.process import Process
    from pylink.audit.registration import Image, Module, Outcome
    from pylink.audit.remedies import Remedy
    from pylink.diagnostics.record import Diagnostic
    from pylink.diagnostics.sink import Sink

# Less unused relocatable code is not reported: every library that nvcc links has some.
LEAST_REPORTED_BYTES = 1 << 20
# Prefixes of the names of system libraries. These never have modules (device code), so a finding
# does not list them among the libraries that were not found.
SYSTEM_LIBRARIES = ("ld-linux", "libc.", "libcuda.", "libcudart.", "libdl.", "libgcc_s.", "libm.",
         "libpthread.", "librt.", "libstdc++.")  # fmt: skip


class Auditor:
    """Reports the findings about a process, the files that a program loads, to a sink."""

    def __init__(self, process: Process, sink: Sink) -> None:
        self._process = process
        self._sink = sink
        self._groups = process.groups
        self._files = [file for file in process.files if file.has_device_code]

    def report(self, *, gpu: int | None = None) -> None:
        """Apply all rules; `gpu` is an SM number that all files should have code for."""
        device = DeviceCode()
        if self._groups:
            self._report_registration()
        self._report_shared(device)
        for file in self._files:
            self._report_file(file, gpu)
        for path, reason in self._process.skipped.items():
            self._sink.report("audit-skipped", file=path, reason=reason)

    def _report_registration(self) -> None:
        """Report modules that no image registers, missing fat binaries, and faults of images."""
        outcome = simulate(self._groups)
        remedies = Remedies(self._groups, outcome, self._process.program)
        by_file: dict[LinkedFile, list[Module]] = {}
        for module in outcome.unanswered:
            by_file.setdefault(module.file, []).append(module)
        for file, modules in by_file.items():  # one finding for all modules of a file
            remedy = remedies.find(set(modules), partial(remedies.for_unanswered, file))
            self._sink.report(
                "audit-unanswered",
                file=file.display_path,
                id=decode_name(modules[0].id),
                hints=[*_describe_remedy(remedy, modules[0].id), *self._missing_libraries()],
            )
        missing: dict[LinkedFile, bytes] = {}
        for file, identifier in outcome.without_code:
            missing.setdefault(file, identifier)
        for file, identifier in missing.items():
            step = note("audit-need", file=file.display_path)
            hints = [step, *self._missing_libraries()]
            self._sink.report(
                "audit-no-code", file=file.display_path, id=decode_name(identifier), hints=hints
            )
        for image in outcome.images:
            self._report_image(image, outcome, remedies)

    def _report_image(self, image: Image, outcome: Outcome, remedies: Remedies) -> None:
        """Report an unregistered image (linked device code), and modules that call it too late."""
        file = image.file
        # An image that no module calls is not needed if another one registered some of its modules.
        is_needed = image.calls or outcome.registered_ids.isdisjoint(file.answers)
        if not image.is_registered and not is_needed:
            self._sink.report("audit-image-unused", file=file.display_path)
        elif not image.is_registered:
            called = {call.id for call in image.calls}
            absent = [name for name in file.answers if name not in called]
            self._report_unregistered(image, absent, outcome, remedies)
        for module, count in Counter(image.late).items():
            if module in outcome.lost_modules or count > 1:
                is_copy = module.id in outcome.registered_ids
                remedy = remedies.find({module}, partial(remedies.for_late, module, image))
                self._report(
                    "audit-late-copy" if is_copy else "audit-late",
                    _describe_remedy(remedy, module.id),
                    file=module.file.display_path,
                    other=file.display_path,
                    id=decode_name(module.id),
                )

    def _report_unregistered(
        self, image: Image, absent: Sequence[bytes], outcome: Outcome, remedies: Remedies
    ) -> None:
        """Report an unregistered image; `absent` are the ids of its modules that do not call it.

        The call of the last of its modules registers an image. If a module of `absent` calls the
        image of another file, the finding is audit-incomplete, else audit-waiting. If other files
        have registered copies of all lost modules, `-copy` is added to the kind.
        """
        file = image.file
        takers = {module.id: taker for module, taker in outcome.takers.items()}
        lost = {call for call in image.calls if call in outcome.lost_modules}
        lost_ids = {call.id for call in lost} - outcome.registered_ids  # no registered copy
        elsewhere = next((name for name in absent if name in takers), None)
        identifier = elsewhere or next(iter(absent), b"")
        facts: dict[str, str | int] = {"file": file.display_path, "id": decode_name(identifier)}
        hints = _describe_remedy(
            remedies.find(lost, partial(remedies.for_image, file, absent)), identifier
        )
        if elsewhere is None:
            hints += self._missing_libraries()
        else:
            facts["other"] = takers[elsewhere].display_path
        if lost_ids:
            facts["lost"] = len(lost_ids)
        if elsewhere is not None:
            kind = "audit-incomplete" if lost_ids else "audit-incomplete-copy"
        else:
            kind = "audit-waiting" if lost_ids else "audit-waiting-copy"
        self._report(kind, hints, **facts)

    def _report_shared(self, device: DeviceCode) -> None:
        """Report kernels and variables whose names several files have."""
        for shared in find_shared_kernels(self._groups, device):
            facts: dict[str, str | int] = {
                "file": shared.first.display_path,
                "other": shared.second.display_path,
                "symbol": shared.names[0],
                "count": len(shared.names),
            }
            if shared.differs:
                hints = [note("audit-hidden-kernels", file=shared.first.display_path)]
                self._report("audit-kernel", hints, **facts)
            else:
                self._report("audit-kernel-copy", (), **facts)
        for shared in find_shared_variables(self._files, device):
            self._sink.report(
                "audit-variable",
                file=shared.first.display_path,
                other=shared.second.display_path,
                symbol=shared.names[0],
                count=len(shared.names),
            )

    def _report_file(self, file: LinkedFile, gpu: int | None) -> None:
        """Apply the rules about a single file."""
        path = file.display_path
        if gpu is not None and file.images and not has_code_for(file, gpu):
            names = architectures(entry for image in file.images for entry in image.entries)
            self._sink.report(
                "audit-gpu",
                file=path,
                sm=gpu,
                archs=", ".join(names) or "-",
                hints=[note("audit-target", file=path, sm=gpu)],
            )
        size = unused_relocatable(file)
        if size >= LEAST_REPORTED_BYTES:
            self._sink.report(
                "audit-relocatable", file=path, size=size, hints=[note("audit-strip", file=path)]
            )
        id_count = len(file.calls)
        if file.has_sections and file.module_count >= 0 and id_count != file.module_count:
            self._sink.report("audit-ids", file=path, containers=file.module_count, ids=id_count)
        if not file.has_sections:
            self._sink.report("audit-no-sections", file=path)
        for fault in file.faults:
            self._sink.report("audit-damaged", file=path, reason=fault)

    def _report(self, kind: str, hints: Iterable[Diagnostic], **facts: str | int) -> None:
        """Report a finding whose kind and facts depend on the case."""
        self._sink.report(
            kind, source=None, children=(), notes=(), hints=hints, explain=None, **facts
        )

    def _missing_libraries(self) -> list[Diagnostic]:
        """Return a note that names the libraries that were not found; empty if all were."""
        names = [name for name in self._process.missing if not name.startswith(SYSTEM_LIBRARIES)]
        return [note("audit-elsewhere", libraries=", ".join(names))] if names else []


def report_launchers(launchers: Iterable[Launcher], sink: Sink) -> None:
    """Report weak, visible functions of objects that launch kernels."""
    for launcher in launchers:
        sink.report(
            "audit-launcher",
            file=launcher.file,
            symbol=launcher.function,
            kernel=launcher.kernel,
            hints=[note("audit-internal", symbol=launcher.function)],
        )


def _describe_remedy(remedy: Remedy | None, identifier: bytes) -> list[Diagnostic]:
    """Return a note on the build step `remedy`; if None, one on sharing the module `identifier`."""
    if remedy is None:
        return [note("audit-share", id=decode_name(identifier))]
    return [note(remedy.kind, source=None, context=(), **remedy.facts)]
