"""Build steps that repair a failed registration; each is first tried in the simulation."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pylink.audit.kernels import decode_name
from pylink.audit.registration import current_state, repeated_ids, simulate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pylink.audit.model import LinkedFile
    from pylink.audit.process import Group
    from pylink.audit.registration import FileState, Image, Module, Outcome


@dataclass(frozen=True)
class Remedy:
    """A build step: the files that it changes, with their new states, and a note about it.

    `kind` and `facts` are those of the note, a diagnostic.
    """

    kind: str
    facts: dict[str, str]
    changes: dict[LinkedFile, FileState]


class Remedies:
    """Finds remedies for the modules that a process loses: their host code finds no kernels."""

    # Limit of the trials of one object, after which no remedy is found. Each trial simulates all
    # calls of the process.
    MOST_TRIALS = 400

    def __init__(
        self, groups: Sequence[Group], outcome: Outcome, program: LinkedFile | None
    ) -> None:
        self._groups = groups
        self._files = [file for group in groups for file in group.loaded]
        self._outcome = outcome
        self._trials = 0  # number of trials so far
        self._program = program
        # The files that are loaded when the program starts.
        self._started = set(groups[0].loaded) if program is not None else set()
        # By file: its state after the remedies that were found so far, and its state before the
        # candidates that are tried now. Other files are in their present state.
        self._changes: dict[LinkedFile, FileState] = {}
        self._base: dict[LinkedFile, FileState] = {}

    def find(
        self, modules: set[Module], candidates: Callable[[], Iterator[Remedy]]
    ) -> Remedy | None:
        """Return the first candidate that saves all `modules` and loses no others, or None.

        Candidates are tried from the present state first, then after the remedies that were found
        earlier.
        """
        for base in ({}, self._changes):
            self._base = dict(base)
            for candidate in candidates():
                self._trials += 1
                if self._trials > self.MOST_TRIALS:
                    return None
                if self._helps(modules, candidate):
                    for file, change in candidate.changes.items():
                        self._changes[file] = change
                    return candidate
        return None

    def _helps(self, modules: set[Module], candidate: Remedy) -> bool:
        """Return whether the candidate saves all `modules` and loses no others."""
        changes = {**self._base, **candidate.changes}
        outcome = simulate(self._groups, changes)
        # Ids of modules that a file no longer contains: other files' copies must be registered.
        copies = {
            module.id
            for module in modules
            if module.file in changes and module.id not in changes[module.file].calls
        }
        return (
            not modules & outcome.lost_modules
            and copies <= outcome.registered_ids
            and outcome.lost_modules <= self._outcome.lost_modules
        )

    def _state(self, file: LinkedFile) -> FileState:
        """Return the state of a file in which remedies are tried."""
        return self._base.get(file) or current_state(file)

    def for_image(self, file: LinkedFile, missing: Sequence[bytes]) -> Iterator[Remedy]:
        """Yield remedies for the image of `file`, which the modules with ids `missing` do not call.

        So the image is not registered.
        """
        takers = [
            taker
            for module, taker in self._outcome.takers.items()
            if module.id in missing and taker is not file
        ]
        others = list(dict.fromkeys(takers))  # files whose images answer the missing modules
        for other in others:
            for omitted_file, kept_file in ((file, other), (other, file)):
                if (
                    set(omitted_file.answers) <= set(kept_file.answers)
                    and not omitted_file.is_program
                ):
                    now = replace(
                        self._state(omitted_file),
                        answers=(),
                        self_bound=frozenset(),
                        visible=frozenset(),
                    )
                    facts = {"file": omitted_file.display_path, "other": kept_file.display_path}
                    yield Remedy("audit-omit", facts, {omitted_file: now})
        if file.is_program:
            yield self._contain(file, missing)
        yield from self._borrow(file, missing)
        yield from self._bind(file)
        yield from self._open(file)
        for other in others:
            yield from self._open(other)
        yield self._contain(file, missing)
        for other in others:
            yield from self._bind(other)

    def for_late(self, module: Module, image: Image) -> Iterator[Remedy]:
        """Yield remedies for a module that calls an image after its registration."""
        file = module.file
        if module.id in file.answers:
            yield from self._bind(file)
            yield from self._open(file)
        # All but one of several files that contain a module may omit it: try the last one first.
        calls = [*image.calls, *image.late]
        for identifier in repeated_ids(calls):
            callers = [call.file for call in calls if call.id == identifier]
            for caller in reversed(callers):
                now = self._state(caller)
                remaining = tuple(name for name in now.calls if name != identifier)
                facts = {"file": caller.display_path, "id": decode_name(identifier)}
                yield Remedy("audit-once", facts, {caller: replace(now, calls=remaining)})
        yield from self._open(image.file)

    def for_unanswered(self, file: LinkedFile) -> Iterator[Remedy]:
        """Yield remedies for a file whose modules no file registers."""
        program = self._program
        if program is not None and file in self._started and file is not program:
            facts = {"file": file.display_path, "other": program.display_path}
            yield Remedy(
                "audit-link", facts, self._link_into_program(program, file, self._state(file))
            )
        closed = replace(
            self._state(file),
            answers=tuple(dict.fromkeys(file.calls)),
            self_bound=frozenset(file.calls),
            visible=frozenset(),
        )
        yield Remedy("audit-close", {"file": file.display_path}, {file: closed})

    def _bind(self, file: LinkedFile) -> Iterator[Remedy]:
        """Yield remedies in which the file's own image answers its calls."""
        if file.is_program:
            return
        now = self._state(file)
        bound = replace(now, self_bound=frozenset(now.answers))
        if now.self_bound != bound.self_bound:
            facts = {"file": file.display_path}
            yield Remedy("audit-symbolic", facts, {file: bound})
            yield Remedy("audit-hide", facts, {file: replace(bound, visible=frozenset())})

    def _open(self, file: LinkedFile) -> Iterator[Remedy]:
        """Yield the remedy that moves a library's modules into the program's device link."""
        program = self._program
        if program is None or file is program or file not in self._started or not file.answers:
            return
        opened = replace(self._state(file), answers=(), self_bound=frozenset(), visible=frozenset())
        facts = {"file": file.display_path, "other": program.display_path}
        yield Remedy("audit-open", facts, self._link_into_program(program, file, opened))

    def _link_into_program(
        self, program: LinkedFile, file: LinkedFile, opened: FileState
    ) -> dict[LinkedFile, FileState]:
        """Return states in which the program's image has the modules of `file`, too.

        `opened` is the state of `file` then.
        """
        now = self._state(program)
        added = set(file.calls) | set(file.answers)
        answers = tuple(dict.fromkeys([*now.answers, *sorted(added)]))
        bound_ids = frozenset(answers) if program.is_program else now.self_bound
        linked = replace(now, answers=answers, self_bound=bound_ids, visible=now.visible | added)
        return {file: opened, program: linked}

    def _borrow(self, file: LinkedFile, missing: Sequence[bytes]) -> Iterator[Remedy]:
        """Yield the remedy in which a file borrows `missing` modules from libraries, if possible.

        `file` links their code, but the device links of the libraries register them. A library
        that lacks such a device link gets one.
        """
        absent = [name for name in missing if name not in file.calls]
        holders = [self._find_holder(file, name) for name in absent]
        if not absent or None in holders:
            return
        lenders = list(dict.fromkeys(holder for holder in holders if holder is not None))
        lent = {name for lender in lenders for name in lender.calls}
        changes = {}
        for lender in lenders:
            now = self._state(lender)
            if not set(absent).intersection(lender.calls) <= set(now.answers):
                answers = tuple(dict.fromkeys(lender.calls))
                changes[lender] = replace(now, answers=answers, self_bound=frozenset(answers))
        kind = "audit-lend" if changes else "audit-borrow"
        # Files that linked the code of a library no longer do if it gets a device link of its own.
        users = [user for user in self._files if user not in lenders] if changes else [file]
        for user in users:
            now = self._state(user)
            remaining = tuple(
                name for name in now.answers if name not in lent or name in user.calls
            )
            if remaining != now.answers:
                visible = now.visible.intersection(remaining)
                changes[user] = replace(now, answers=remaining, visible=visible)
        facts = {"file": file.display_path, "other": lenders[0].display_path}
        yield Remedy(kind, facts, changes)

    def _find_holder(self, file: LinkedFile, identifier: bytes) -> LinkedFile | None:
        """Return the first library, except `file`, that has the host code of a module, or None."""
        for other in self._files:
            if other is not file and not other.is_program and identifier in other.calls:
                return other
        return None

    def _contain(self, file: LinkedFile, missing: Sequence[bytes]) -> Remedy:
        """Return the remedy that adds host code of `missing` modules to a file.

        Calls of modules in the file then reach its own image.
        """
        now = self._state(file)
        absent = [name for name in missing if name not in now.calls]
        bound_ids = frozenset(now.answers)
        facts = {"file": file.display_path, "id": decode_name(missing[0]) if missing else ""}
        if file.is_program:
            complete = replace(now, calls=(*now.calls, *absent), self_bound=bound_ids)
            return Remedy("audit-object", facts, {file: complete})
        complete = replace(
            now, calls=(*now.calls, *absent), self_bound=bound_ids, visible=frozenset()
        )
        return Remedy("audit-contain", facts, {file: complete})
