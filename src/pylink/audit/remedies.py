"""Build steps that help where registration goes wrong, each tried in the simulation first."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pylink.audit.registration import as_it_is, repeats, simulate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pylink.audit.linkedfile import LinkedFile
    from pylink.audit.process import Group
    from pylink.audit.registration import Change, Image, Module, Outcome


@dataclass(frozen=True)
class Remedy:
    """A build step: the kind of its note, with the facts of that, and what it makes of files."""

    kind: str
    facts: dict[str, str]
    changes: dict[LinkedFile, Change]


class Remedies:
    """Finds remedies for the modules that a process loses."""

    # Each trial follows all calls of the process.
    MOST_TRIALS = 400

    def __init__(
        self, groups: Sequence[Group], outcome: Outcome, program: LinkedFile | None
    ) -> None:
        self._groups = groups
        self._files = [file for group in groups for file in group.loaded]
        self._outcome = outcome
        self._trials = 0
        self._program = program
        self._started = set(groups[0].loaded) if program is not None else set()
        # What the steps that were found so far make of files, and what candidates begin with.
        self._changes: dict[LinkedFile, Change] = {}
        self._base: dict[LinkedFile, Change] = {}

    def find(
        self, modules: set[Module], candidates: Callable[[], Iterator[Remedy]]
    ) -> Remedy | None:
        """The first candidate with which none of the modules is lost, and nothing else either.

        A candidate that helps only after the steps that were found earlier counts as well.
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
        changes = {**self._base, **candidate.changes}
        tried = simulate(self._groups, changes)
        # If a copy is omitted, another one must be registered.
        copies = {
            module.id
            for module in modules
            if module.file in changes and module.id not in changes[module.file].calls
        }
        return (
            not modules & tried.lost
            and copies <= tried.registered_ids
            and tried.lost <= self._outcome.lost
        )

    def _now(self, file: LinkedFile) -> Change:
        return self._base.get(file) or as_it_is(file)

    def for_image(self, file: LinkedFile, missing: Sequence[bytes]) -> Iterator[Remedy]:
        """Steps for an image that waits for the `missing` modules."""
        takers = [
            taker
            for module, taker in self._outcome.takers.items()
            if module.id in missing and taker is not file
        ]
        others = list(dict.fromkeys(takers))
        for other in others:
            for less, more in ((file, other), (other, file)):
                if set(less.answers) <= set(more.answers) and not less.is_program:
                    now = replace(self._now(less), answers=(), own=frozenset(), visible=frozenset())
                    facts = {"file": less.shown, "other": more.shown}
                    yield Remedy("audit-omit", facts, {less: now})
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
        """Steps for a module that calls an image that is complete."""
        file = module.file
        if module.id in file.answers:
            yield from self._bind(file)
            yield from self._open(file)
        # Callers that call twice, the later one first.
        calls = [*image.calls, *image.late]
        for identifier in repeats(calls):
            callers = [call.file for call in calls if call.id == identifier]
            for caller in reversed(callers):
                now = self._now(caller)
                rest = tuple(name for name in now.calls if name != identifier)
                facts = {"file": caller.shown, "id": text(identifier)}
                yield Remedy("audit-once", facts, {caller: replace(now, calls=rest)})
        yield from self._open(image.file)

    def for_unanswered(self, file: LinkedFile) -> Iterator[Remedy]:
        """Steps for a file whose modules no file registers."""
        program = self._program
        if program is not None and file in self._started and file is not program:
            facts = {"file": file.shown, "other": program.shown}
            yield Remedy("audit-link", facts, self._linked(program, file, self._now(file)))
        closed = replace(
            self._now(file),
            answers=tuple(dict.fromkeys(file.calls)),
            own=frozenset(file.calls),
            visible=frozenset(),
        )
        yield Remedy("audit-close", {"file": file.shown}, {file: closed})

    def _bind(self, file: LinkedFile) -> Iterator[Remedy]:
        """The file answers its own calls."""
        if file.is_program:
            return
        now = self._now(file)
        bound = replace(now, own=frozenset(now.answers))
        if now.own != bound.own:
            facts = {"file": file.shown}
            yield Remedy("audit-symbolic", facts, {file: bound})
            yield Remedy("audit-hide", facts, {file: replace(bound, visible=frozenset())})

    def _open(self, file: LinkedFile) -> Iterator[Remedy]:
        """The program's device link takes the modules of a library."""
        program = self._program
        if program is None or file is program or file not in self._started or not file.answers:
            return
        opened = replace(self._now(file), answers=(), own=frozenset(), visible=frozenset())
        facts = {"file": file.shown, "other": program.shown}
        yield Remedy("audit-open", facts, self._linked(program, file, opened))

    def _linked(
        self, program: LinkedFile, file: LinkedFile, opened: Change
    ) -> dict[LinkedFile, Change]:
        """The program registers what the file has; the file itself is `opened` then."""
        now = self._now(program)
        added = set(file.calls) | set(file.answers)
        answers = tuple(dict.fromkeys([*now.answers, *sorted(added)]))
        own = frozenset(answers) if program.is_program else now.own
        linked = replace(now, answers=answers, own=own, visible=now.visible | added)
        return {file: opened, program: linked}

    def _borrow(self, file: LinkedFile, missing: Sequence[bytes]) -> Iterator[Remedy]:
        """The file takes code that libraries register; for that these are closed, and lend it."""
        absent = [name for name in missing if name not in file.calls]
        holders = [self._holder(file, name) for name in absent]
        if not absent or None in holders:
            return
        lenders = list(dict.fromkeys(holder for holder in holders if holder is not None))
        lent = {name for lender in lenders for name in lender.calls}
        changes = {}
        for lender in lenders:
            now = self._now(lender)
            if not set(absent).intersection(lender.calls) <= set(now.answers):
                own = tuple(dict.fromkeys(lender.calls))
                changes[lender] = replace(now, answers=own, own=frozenset(own))
        kind = "audit-lend" if changes else "audit-borrow"
        # What else linked the code of a library that was open.
        users = [user for user in self._files if user not in lenders] if changes else [file]
        for user in users:
            now = self._now(user)
            kept = tuple(name for name in now.answers if name not in lent or name in user.calls)
            if kept != now.answers:
                visible = now.visible.intersection(kept)
                changes[user] = replace(now, answers=kept, visible=visible)
        facts = {"file": file.shown, "other": lenders[0].shown}
        yield Remedy(kind, facts, changes)

    def _holder(self, file: LinkedFile, identifier: bytes) -> LinkedFile | None:
        """The first library other than the file that has the host code of a module."""
        for other in self._files:
            if other is not file and not other.is_program and identifier in other.calls:
                return other
        return None

    def _contain(self, file: LinkedFile, missing: Sequence[bytes]) -> Remedy:
        """The file has the host code of all modules of its image, and answers it itself."""
        now = self._now(file)
        absent = [name for name in missing if name not in now.calls]
        own = frozenset(now.answers)
        facts = {"file": file.shown, "id": text(missing[0]) if missing else ""}
        if file.is_program:
            whole = replace(now, calls=(*now.calls, *absent), own=own)
            return Remedy("audit-object", facts, {file: whole})
        whole = replace(now, calls=(*now.calls, *absent), own=own, visible=frozenset())
        return Remedy("audit-contain", facts, {file: whole})


def text(identifier: bytes) -> str:
    """An id as messages have it."""
    return identifier.decode("utf-8", "surrogateescape")
