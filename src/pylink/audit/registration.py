"""A simulation of the registration of modules: which image each module calls, and the outcome.

`pylink.inputs.registration` explains registration. Here all files of a process are known, with
their order and scopes, so the simulation follows each call.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property

from pylink.facts.fatbinentries import REGISTER_PREFIX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pylink.audit.model import LinkedFile
    from pylink.audit.process import Group


@dataclass(frozen=True)
class Module:
    """The host code that `file` has for a module, whose id is `id`.

    A module is the relocatable device code of one source file.
    """

    file: LinkedFile
    id: bytes


@dataclass
class Image:
    """The image (linked device code) of a file; the `size`-th call by a module registers it.

    `size` is the number of modules in the image. `calls` are the modules that call it until then,
    `late` the modules that call it afterwards.
    """

    file: LinkedFile
    size: int
    calls: list[Module] = field(default_factory=list)
    late: list[Module] = field(default_factory=list)

    @property
    def is_registered(self) -> bool:
        return len(self.calls) >= self.size


@dataclass
class Outcome:
    """The outcome of the calls with which modules register while the files are loaded.

    * `images`: the images of all files, in the order in which the files register.
    * `unanswered`: modules whose registering function no file in their scope defines.
    * `without_code`: pairs of a file and an id, if the image of the file refers to the fat binary
      of the module with this id, which no file in scope exports.
    * `takers`: the file that answers the call of each module.
    """

    images: list[Image] = field(default_factory=list)
    unanswered: list[Module] = field(default_factory=list)
    without_code: list[tuple[LinkedFile, bytes]] = field(default_factory=list)
    takers: dict[Module, LinkedFile] = field(default_factory=dict)

    @cached_property
    def registered(self) -> set[Module]:
        """Modules whose calls led to the registration of an image, without late ones."""
        return {call for image in self.images if image.is_registered for call in image.calls}

    @cached_property
    def registered_ids(self) -> set[bytes]:
        return {call.id for call in self.registered}

    @cached_property
    def lost_modules(self) -> set[Module]:
        """Modules whose host code, in their file, does not find its kernels."""
        modules = set(self.unanswered)
        for image in self.images:
            modules.update(image.late)
            if not image.is_registered:
                modules.update(image.calls)
        return modules - self.registered


@dataclass(frozen=True)
class FileState:
    """The module ids of a file, now or after another build step.

    `calls`, `answers` and `self_bound` are as in `LinkedFile`: modules whose host code it contains,
    modules in its image, and modules whose calls always reach this image. `visible` are those of
    `answers` whose registering function other files find.
    """

    calls: tuple[bytes, ...]
    answers: tuple[bytes, ...]
    self_bound: frozenset[bytes]
    visible: frozenset[bytes]


def current_state(file: LinkedFile) -> FileState:
    """Return the state of a file as it is now."""
    visible = frozenset(name for name in file.answers if REGISTER_PREFIX + name in file.defined)
    return FileState(tuple(file.calls), tuple(file.answers), frozenset(file.self_bound), visible)


def simulate(
    groups: Sequence[Group], changes: Mapping[LinkedFile, FileState] | None = None
) -> Outcome:
    """Follow the registering call of each module while the files of `groups` are loaded in order.

    `changes` has states of files to assume instead of the present ones.
    """
    files = {file: current_state(file) for group in groups for file in group.loaded}
    files.update(changes or {})
    outcome = Outcome()
    images: dict[LinkedFile, Image] = {}
    # For the global scope, and for the group's own scope: the first file that answers each id, and
    # the ids of modules whose fat binaries a file exports.
    global_answers: dict[bytes, LinkedFile] = {}
    global_wrappers: set[bytes] = set()
    for group in groups:
        local_answers: dict[bytes, LinkedFile] = {}
        local_wrappers: set[bytes] = set()
        for file in group.members:
            for identifier in files[file].visible:
                local_answers.setdefault(identifier, file)
            local_wrappers |= file.defined_wrappers
        if group.is_global:
            for identifier, file in local_answers.items():
                global_answers.setdefault(identifier, file)
            global_wrappers |= local_wrappers
        for file in group.loaded:
            if files[file].answers:
                images[file] = Image(file, len(files[file].answers))
        for file in group.loaded:
            for identifier in files[file].calls:
                module = Module(file, identifier)
                if identifier in files[file].self_bound:
                    taker: LinkedFile | None = file
                else:
                    taker = global_answers.get(identifier) or local_answers.get(identifier)
                if taker is None or taker not in images:
                    outcome.unanswered.append(module)
                    continue
                outcome.takers[module] = taker
                image = images[taker]
                (image.late if image.is_registered else image.calls).append(module)
            absent = sorted(file.needs - global_wrappers - local_wrappers)
            outcome.without_code += [(file, identifier) for identifier in absent]
    outcome.images = list(images.values())
    return outcome


def repeated_ids(calls: Iterable[Module]) -> list[bytes]:
    """Return the ids that occur in more than one call."""
    return [name for name, count in Counter(call.id for call in calls).items() if count > 1]
