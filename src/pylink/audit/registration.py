"""The registration of modules, simulated: which image each module calls, and what that comes to.

`pylink.inputs.registration` tells how registration works. Here all files of a process are known,
with their order and scopes, so each call is followed one by one.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from pylink.audit.linkedfile import REGISTER

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pylink.audit.linkedfile import LinkedFile
    from pylink.audit.process import Group


@dataclass(frozen=True)
class Module:
    """The host code of a module in a file."""

    file: LinkedFile
    id: bytes


@dataclass
class Image:
    """The image of a file, with the modules that call it in time, and those that come too late.

    `is_registered` says that the counter was reached.
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
    """What registration comes to.

    `unanswered` are modules whose function no file defines; `without_code` are pairs of a file and
    an id whose fat binary its image refers to in vain. `takers` has the file that answers each.
    """

    images: list[Image] = field(default_factory=list)
    unanswered: list[Module] = field(default_factory=list)
    without_code: list[tuple[LinkedFile, bytes]] = field(default_factory=list)
    takers: dict[Module, LinkedFile] = field(default_factory=dict)

    @cached_property
    def registered(self) -> set[Module]:
        return {call for image in self.images if image.is_registered for call in image.calls}

    @cached_property
    def registered_ids(self) -> set[bytes]:
        return {call.id for call in self.registered}

    @cached_property
    def lost(self) -> set[Module]:
        """Modules whose kernels are not found, at least by the copy in their file."""
        lost = set(self.unanswered)
        for image in self.images:
            lost.update(image.late)
            if not image.is_registered:
                lost.update(image.calls)
        return lost - self.registered


@dataclass(frozen=True)
class Change:
    """What a file would be after another build step; the fields are those of `LinkedFile`.

    `visible` are the answers that other files find.
    """

    calls: tuple[bytes, ...]
    answers: tuple[bytes, ...]
    own: frozenset[bytes]
    visible: frozenset[bytes]


def as_it_is(file: LinkedFile) -> Change:
    """A file without a change."""
    visible = frozenset(name for name in file.answers if REGISTER + name in file.defined)
    return Change(tuple(file.calls), tuple(file.answers), frozenset(file.own), visible)


def simulate(
    groups: Sequence[Group], changes: Mapping[LinkedFile, Change] | None = None
) -> Outcome:
    """Follow each call of a process whose files may have been changed."""
    files = {file: as_it_is(file) for group in groups for file in group.loaded}
    files.update(changes or {})
    outcome = Outcome()
    images: dict[LinkedFile, Image] = {}
    # What the global scope has: the first file that answers each id, and the names of fat binaries.
    answering: dict[bytes, LinkedFile] = {}
    holding: set[bytes] = set()
    for group in groups:
        local: dict[bytes, LinkedFile] = {}
        held: set[bytes] = set()
        for file in group.members:
            for identifier in files[file].visible:
                local.setdefault(identifier, file)
            held |= file.defined_wrappers
        if group.is_global:
            for identifier, file in local.items():
                answering.setdefault(identifier, file)
            holding |= held
        for file in group.loaded:
            if files[file].answers:
                images[file] = Image(file, len(files[file].answers))
        for file in group.loaded:
            for identifier in files[file].calls:
                module = Module(file, identifier)
                if identifier in files[file].own:
                    taker: LinkedFile | None = file
                else:
                    taker = answering.get(identifier) or local.get(identifier)
                if taker is None or taker not in images:
                    outcome.unanswered.append(module)
                    continue
                outcome.takers[module] = taker
                image = images[taker]
                (image.late if image.is_registered else image.calls).append(module)
            absent = sorted(file.needs - holding - held)
            outcome.without_code += [(file, identifier) for identifier in absent]
    outcome.images = list(images.values())
    return outcome


def repeats(calls: Iterable[Module]) -> list[bytes]:
    """The ids that call more than once."""
    return [name for name, count in Counter(call.id for call in calls).items() if count > 1]
