"""Inputs that several links have in common: each file is read once, what is in it is found once,
and payloads that several links take are decompressed once.

Links may run side by side. What one is given nobody changes, and nothing in it follows from the
options or the target of another: its result is that of a link alone. What cannot be shared, such as
a file that is not there, is left to each link, which says what is wrong with it.

Memory: the inputs once, and once more what several links take of those that are compressed. Each
link adds what it takes, for as long as it runs, unless nearly all of that is stored in one large
arena, where it stays.
"""

from __future__ import annotations

from _thread import allocate_lock

from pylink._native import inputfiles, sharing
from pylink.diagnostics import Sink
from pylink.diagnostics.errors import LinkError
from pylink.facts.target import Target
from pylink.inputs.sources import Run
from pylink.options.plan import Plan
from pylink.phases.load import SURE_SIZE, measure, paths_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from collections.abc import Set as AbstractSet

    from pylink.inputs.loaded import Contents
    from pylink.options.model import Input
    from pylink.phases.init import Job


# From so many bytes of inputs on, links leave in place what is stored. For the rest, such as the
# device runtime, each has so much room after them: addresses, which take memory only when used.
LARGE = 8 << 20
ROOM = 1 << 20


class SharedInputs:
    """Inputs that were read by `add`, for links that take some of them.

    `everything` are the inputs of links that take all, in order: what is in these is found once.
    `archs` are the architectures of these links, and `optimizes` says that they compile LTO-IR: of
    payloads only those are kept that more than one of them takes. Without any, all are.
    """

    __slots__ = (
        "_contents",
        "_found",
        "_given",
        "_kept",
        "_known",
        "_lock",
        "_looked",
        "_places",
        "_repeated",
        "_runs",
        "_stores",
        "_tail",
        "archs",
        "everything",
        "optimizes",
    )

    def __init__(self, archs: Sequence[str] = (), *, optimizes: bool = False) -> None:
        self.archs = archs
        self.optimizes = optimizes
        self.everything: list[Input] = []
        self._lock = allocate_lock()
        self._runs: list[Run] = []
        # The number of the run that an input is in, and its own in that.
        self._places: dict[str | int, tuple[int, int]] = {}
        # Contents that go by what object they are: no other may take its place in memory.
        self._kept: list[bytes] = []
        # Where all inputs are, and what is in them.
        self._found = self._looked = False
        self._given: list[Run] | None = None
        self._contents: Contents | None = None
        # Where payloads are, decompressed: see `_native.sharing`.
        self._known: dict[int, int] = {}
        self._stores: list[bytes] = []
        self._tail: inputfiles.Tail | None = None
        self._repeated: AbstractSet[int] | None = None if not archs else frozenset()

    def add(self, inputs: Sequence[Input], plan: Plan, sink: Sink) -> None:
        """Read those of the inputs that were not read before, to one run.

        A fatal diagnostic for one that `plan` would overwrite. What cannot be read is omitted.
        """
        fresh = {_key(source): source for source in inputs if _key(source) not in self._places}
        sources = list(fresh.values())
        paths, data = paths_of(sources), [source.data for source in sources]
        sizes = inputfiles.measure(paths, SURE_SIZE, list(plan.written(again=True)))
        for number in [number for number, size in enumerate(sizes) if size < 0]:
            data[number], sizes[number] = _measure(sources[number], plan, sink)
            if data[number] is not None:
                paths[number] = None
        rows = list(zip(fresh, paths, sizes, data, strict=True))
        if 0 in sizes:
            rows = [row for row in rows if row[2] > 0]
        if not rows:
            return
        keys = [row[0] for row in rows]
        try:
            tail = self._tail_size(sum(row[2] for row in rows))
            arena, extents, failed, _ = inputfiles.read_files(
                [row[1] for row in rows],
                [row[2] for row in rows],
                [row[3] for row in rows],
                tail=tail,
            )
        except MemoryError:
            return
        if failed >= 0:
            return
        if tail:
            self._tail = inputfiles.Tail(arena, tail)
        self._kept += [source.data for source in sources if source.data is not None]
        kinds = inputfiles.classify(arena, extents) or bytes(len(keys))
        home = len(self._runs)
        self._runs.append(Run(arena, [fresh[key].name for key in keys], kinds, extents))
        self._places.update({key: (home, place) for place, key in enumerate(keys)})

    def _tail_size(self, size: int) -> int:
        """How many bytes links have for other payloads, after so many bytes of inputs."""
        return ROOM * len(self.archs) if size >= LARGE and self._tail is None else 0

    def heads(self, size: int) -> list[tuple[str, bytes]]:
        """The names of the inputs that were read, and so many bytes of each."""
        heads = []
        for run in self._runs:
            starts = memoryview(run.extents).cast("Q")[::2].tolist()
            arena = run.arena
            heads += [
                (name, arena[start : start + size])
                for name, start in zip(run.names, starts, strict=True)
            ]
        return heads

    def give(self, job: Job) -> list[Run] | None:
        """The runs that the inputs of a link lie in, in order; None for one that reads them itself.

        Such are those that lack one here, that would overwrite one, and those that are observed:
        observers get the cost of reading.
        """
        if job.steps.observers:
            return None
        written = job.plan.written(again=True) if job.plan.outputs else {}
        if (
            written
            and min(inputfiles.measure(paths_of(job.inputs), SURE_SIZE, list(written)), default=0)
            < 0
        ):
            return None
        if job.inputs is not self.everything:
            return self._find(job.inputs)
        with self._lock:
            if not self._found:
                self._found = True
                self._given = self._find(self.everything)
        return self._given

    def _find(self, inputs: Sequence[Input]) -> list[Run] | None:
        """The runs of these inputs; None if one of them was not read."""
        places = [self._places.get(_key(source)) for source in inputs]
        runs: list[Run] = []
        first = 0
        while first < len(places):
            place = places[first]
            if place is None:
                return None
            end = first + 1
            while end < len(places) and _is_in(places[end], place[0]):
                end += 1
            numbers = [at[1] for at in places[first:end] if at is not None]
            names = [source.name for source in inputs[first:end]]
            runs.append(self._runs[place[0]].at(numbers, names))
            first = end
        return runs

    def look_into(self, job: Job, runs: Sequence[Run], sink: Sink) -> Contents:
        """What is in the inputs of a link, see `pylink.inputs.unpacking.look_into`.

        It is found once for all links that take everything; unless there is something to report, or
        what is found may depend on the link.
        """
        from pylink.inputs.unpacking import look_into

        if job.inputs is not self.everything:
            return look_into(job, runs, sink)
        with self._lock:
            if not self._looked:
                self._looked = True
                unheard = Sink()
                try:
                    contents = look_into(job, runs, unheard)
                    silent = not unheard.diagnostics
                except LinkError:
                    silent = False
                if silent and contents.libraries is None and not job.plan.members:
                    self._contents = contents
                    self._find_repeated(contents)
        return look_into(job, runs, sink) if self._contents is None else self._contents

    def _find_repeated(self, contents: Contents) -> None:
        """Find the payloads that the links for more than one architecture take."""
        from pylink.inputs.hostobjects import pick_rows

        if len(self.archs) < 2:
            return
        numbers_seen: set[int] = set()
        repeated: set[int] = set()
        homes = self._homes(contents.sources.arenas)
        for arch in self.archs:
            rows = pick_rows(contents, Target(arch), optimizes=self.optimizes)
            packed = sharing.list_packed(rows, homes)
            repeated.update(numbers_seen.intersection(packed))
            numbers_seen.update(packed)
        self._repeated = repeated

    def decompress(self, rows: bytes, arenas: list[bytes]) -> tuple[bytes, list[bytes]]:
        """PickRows in `arenas` as they are in the arenas returned, with payloads decompressed.

        Those that are damaged stay as they are, and so do those that no other link takes.
        """
        homes = self._homes(arenas)
        with self._lock:
            first = len(arenas)
            stored, missing = sharing.recall(rows, homes, first, self._known, self._repeated)
            if missing:
                try:
                    store, extents = inputfiles.gather(missing, arenas, _nothing)
                except MemoryError:
                    return rows, arenas
                sharing.learn(missing, homes, extents, len(self._stores), self._known)
                self._stores.append(store)
                stored, _ = sharing.recall(rows, homes, first, self._known, frozenset())
            return stored, [*arenas, *self._stores]

    def gather(self, rows: bytes, arenas: list[bytes]) -> tuple[bytes, bytes] | None:
        """An arena with the payloads of PickRows and their extents, copied only where needed.

        None where they do not lie in one shared arena, or what does not is too much.
        """
        return None if self._tail is None else inputfiles.gather_in_place(rows, arenas, self._tail)

    def _homes(self, arenas: Sequence[bytes]) -> bytes:
        """The number of the run that each arena is of, -1 for one of the link's own; int32."""
        numbers = {id(run.arena): number for number, run in enumerate(self._runs)}
        return b"".join(
            numbers.get(id(arena), -1).to_bytes(4, "little", signed=True) for arena in arenas
        )


def _key(source: Input) -> str | int:
    """What tells inputs apart: the path, or the object that has the contents."""
    return source.name if source.data is None else id(source.data)


def _is_in(place: tuple[int, int] | None, run: int) -> bool:
    return place is not None and place[0] == run


def _nothing(number: int) -> bytes:
    """Stand for a payload that cannot be decompressed."""
    return b""


def _measure(source: Input, plan: Plan, sink: Sink) -> tuple[bytes | None, int]:
    """The contents, where a file cannot be read at once, and its size in bytes; 0 for none."""
    if source.data is None:
        plan.reads(source.name, sink)
    try:
        return measure(source, Plan({}, (), sink), Sink())
    except LinkError:
        return None, 0
