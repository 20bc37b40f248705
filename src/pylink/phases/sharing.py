"""Inputs that several links share: each file is read and scanned once, and payloads (entries of fat
binaries) that several links take are decompressed once.

Links may run side by side. Shared data never changes, and does not depend on the options or the
target of one link, so a link's result is the same as alone. What cannot be shared, such as a
missing file, is left to each link, which reports the error.

Memory: the inputs, and the decompressed payloads that several links take, once each. Each running
link adds a copy of the code that it takes, unless nearly all of that code is stored uncompressed in
one large arena, where the link reads it in place.
"""

from __future__ import annotations

from _thread import allocate_lock

from pylink._native import inputfiles, payloads, sharing
from pylink._native.cores import use_threads
from pylink._native.recycling import RecycledPages
from pylink.diagnostics import Sink
from pylink.diagnostics.errors import LinkError
from pylink.facts.target import Target
from pylink.inputs.sizes import HEADLESS_SIZE, encode_paths, measure_input, measure_inputs
from pylink.inputs.sources import SourceBatch
from pylink.options.plan import OutputPlan
from pylink.phases.load import refuse_change

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from collections.abc import Set as AbstractSet

    from pylink.inputs.loaded import ScannedInputs
    from pylink.options.model import Input
    from pylink.phases.init import Job


# From STORED_IN_PLACE bytes of inputs on, links read uncompressed code in place. Their arena has a
# tail after the inputs for other code, such as the device runtime: TAIL_SIZE bytes for each link.
# A tail that is not used takes no memory.
STORED_IN_PLACE = 8 << 20
TAIL_SIZE = 1 << 20


class SharedInputs:
    """Inputs that `add` has read, for links that take some of them.

    `everything` are the inputs of links that take all, in order: these are scanned once. `archs`
    are the architectures of these links, and `optimizes` says that they compile LTO-IR. Only
    decompressed payloads that more than one of these links takes are kept; without `archs` all are.

    With `maps` the inputs of the first `add` may stay mapped until `unmap` or the end of a `with`
    statement, see `pylink._native.inputfiles`. Until then a program that opens one to write waits,
    but at most for the time of a lease (45 s). So this is for links that take less time.

    The scan of `everything` uses `threads` threads, those of the links that wait for it (0: as many
    as are free).
    """

    __slots__ = (
        "_batches",
        "_batches_of_everything",
        "_changed_name",
        "_contents_alive",
        "_has_scanned",
        "_lock",
        "_mapped",
        "_mapped_names",
        "_pages",
        "_payload_places",
        "_places",
        "_repeated",
        "_scanned",
        "_searched",
        "_stores",
        "_tail",
        "_threads",
        "archs",
        "everything",
        "optimizes",
    )

    def __init__(
        self,
        archs: Sequence[str] = (),
        *,
        optimizes: bool = False,
        maps: bool = False,
        threads: int = 0,
    ) -> None:
        self._threads = threads
        self.archs = archs
        self.optimizes = optimizes
        self.everything: list[Input] = []
        self._lock = allocate_lock()
        self._batches: list[SourceBatch] = []
        # By input: the number of its batch (what one `add` read), and its number in the batch.
        self._places: dict[str | int, tuple[int, int]] = {}
        # Contents that are keyed by `id`: kept alive, so that no other object gets the same id.
        self._contents_alive: list[bytes] = []
        # The batches of `everything` and their scan. Each is computed at most once, and may be
        # None.
        self._searched = self._has_scanned = False
        self._batches_of_everything: list[SourceBatch] | None = None
        self._scanned: ScannedInputs | None = None
        # Arenas of decompressed payloads, and where the payload of each place in the inputs is in
        # them. A place is a number for an arena and an offset, see `_native.sharing`.
        self._payload_places: dict[int, int] = {}
        self._stores: list[bytes] = []
        self._tail: payloads.Tail | None = None
        # The places of the payloads to keep, which several links take; None to keep all.
        self._repeated: AbstractSet[int] | None = None if not archs else frozenset()
        self._mapped = inputfiles.MappedFiles() if maps else None
        self._pages = RecycledPages()
        self._mapped_names: list[str] = []
        self._changed_name: str | None = None

    def __enter__(self) -> SharedInputs:
        return self

    def __exit__(self, *_: object) -> None:
        self.keep_copies()

    def keep_copies(self) -> None:
        """Copy the mapped inputs, before a link does what may take long, such as compiling."""
        self.unmap(keeps=True)

    def unmap(self, *, keeps: bool) -> None:
        """Unmap the inputs: with `keeps` links and diagnostics can still read them, as copies.

        Without it, nothing may need the inputs any more, and what was derived from them is dropped.
        """
        if not keeps:
            self._batches, self._batches_of_everything, self._stores = [], None, []
            self._scanned = self._tail = None
            self._pages.give_back()
        if self._mapped is not None:
            with self._lock:
                changed = self._mapped.end(keeps=keeps)
                if changed >= 0:
                    self._changed_name = self._mapped_names[changed]

    def refuse_changes(self, sink: Sink) -> None:
        """Raise LinkError, with a diagnostic, if an input was changed while it was mapped."""
        if self._changed_name is not None:
            refuse_change(self._changed_name, sink)

    def add(self, inputs: Sequence[Input], plan: OutputPlan, sink: Sink) -> None:
        """Read the inputs that were not read before, into one batch.

        An input that `plan` would overwrite is a fatal error. Inputs that are empty, or of which no
        size is known, are omitted; all are if reading one fails, or without enough memory.
        """
        new_inputs = dict(zip(_keys(inputs), inputs, strict=True))
        if self._places:
            new_inputs = {
                key: source for key, source in new_inputs.items() if key not in self._places
            }
        sources = list(new_inputs.values())
        paths, sizes, data = measure_inputs(
            sources, plan, lambda source: _measure(source, plan, sink)
        )
        rows = list(zip(new_inputs, paths, sizes, data, strict=True))
        if 0 in sizes:
            rows = [row for row in rows if row[2] > 0]
        if not rows:
            return
        keys = [key for key, _, _, _ in rows]
        try:
            tail = self._tail_size(sum(size for _, _, size, _ in rows))
            mapped = None if self._mapped_names else self._mapped
            if mapped is not None:
                self._mapped_names = [new_inputs[key].name for key in keys]
            arena, extents, failed, _ = inputfiles.read_files(
                [path for _, path, _, _ in rows],
                [size for _, _, size, _ in rows],
                [contents for _, _, _, contents in rows],
                mapped=mapped,
                tail=tail,
                pages=self._pages,
                maps_hosts=True,
            )
        except MemoryError:
            return
        if failed >= 0:
            return
        if tail:
            self._tail = payloads.Tail(arena, tail)
        self._contents_alive += [source.data for source in sources if source.data is not None]
        kinds = inputfiles.classify(arena, extents) or bytes(len(keys))
        batch_number = len(self._batches)
        self._batches.append(
            SourceBatch(arena, [new_inputs[key].name for key in keys], kinds, extents)
        )
        self._places.update({key: (batch_number, index) for index, key in enumerate(keys)})

    def _tail_size(self, size: int) -> int:
        """Return how many bytes to add to a batch of `size` bytes, for payloads from elsewhere."""
        return TAIL_SIZE * len(self.archs) if size >= STORED_IN_PLACE and self._tail is None else 0

    def different_heads(self, size: int, is_left_out: Callable[[str], bool]) -> dict[bytes, str]:
        """Return, by the first `size` bytes of an input, the name of the first input with them.

        Inputs do not count if `is_left_out` returns True for their name.
        """
        heads: dict[bytes, str] = {}
        for batch in self._batches:
            starts = memoryview(batch.extents).cast("Q")[::2].tolist()
            arena = batch.arena
            for name, start in zip(batch.names, starts, strict=True):
                head = arena[start : start + size]
                if head not in heads and not is_left_out(name):
                    heads[head] = name
        return heads

    def batches_for(self, job: Job) -> list[SourceBatch] | None:
        """Return the batches with the inputs of a link, in order.

        None if the link must read them itself.

        A link reads them itself if an input is missing here, if it would overwrite one, or if it
        has observers, which measure the cost of reading.
        """
        if job.steps.observers:
            return None
        written = job.plan.existing_outputs(again=True) if job.plan.outputs else {}
        if (
            written
            and min(
                inputfiles.measure(encode_paths(job.inputs), HEADLESS_SIZE, list(written)),
                default=0,
            )
            < 0
        ):
            return None
        if job.inputs is not self.everything:
            return self._find_batches(job.inputs)
        with self._lock:
            if not self._searched:
                self._searched = True
                self._batches_of_everything = self._find_batches(self.everything)
        return self._batches_of_everything

    def _find_batches(self, inputs: Sequence[Input]) -> list[SourceBatch] | None:
        """Return the batches with these inputs, in order; None if one of them was not read."""
        places = [*map(self._places.get, _keys(inputs))]
        batches: list[SourceBatch] = []
        # Each batch has a run of inputs, from number `first` to `end`, that were read together.
        first = 0
        while first < len(places):
            place = places[first]
            if place is None:
                return None
            batch_number, _ = place
            end = first + 1
            while end < len(places) and _is_in(places[end], batch_number):
                end += 1
            numbers = [
                input_place[1] for input_place in places[first:end] if input_place is not None
            ]
            names = [source.name for source in inputs[first:end]]
            batches.append(self._batches[batch_number].subset(numbers, names))
            first = end
        return batches

    def scan_inputs(self, job: Job, batches: Sequence[SourceBatch], sink: Sink) -> ScannedInputs:
        """List the device code in the inputs of a link with `pylink.inputs.unpacking.scan_inputs`.

        One scan serves all links that take everything, unless it reports something or may depend on
        the link.
        """
        from pylink.inputs.unpacking import scan_inputs

        if job.inputs is not self.everything:
            return scan_inputs(job, batches, sink)
        with self._lock:
            if not self._has_scanned:
                self._has_scanned = True
                silent_sink = Sink()
                threads_before = use_threads(self._threads) if self._threads else None
                try:
                    scanned = scan_inputs(job, batches, silent_sink)
                    silent = not silent_sink.diagnostics
                except LinkError:
                    silent = False
                finally:
                    if threads_before is not None:
                        use_threads(threads_before)
                if silent and scanned.libraries is None and not job.plan.members:
                    self._scanned = scanned
                    self._find_repeated(scanned)
        return scan_inputs(job, batches, sink) if self._scanned is None else self._scanned

    def _find_repeated(self, scanned: ScannedInputs) -> None:
        """Find the payloads that links for more than one architecture take."""
        from pylink.inputs.hostobjects import pick_rows

        if len(self.archs) < 2:
            return
        numbers_seen: set[int] = set()
        repeated: set[int] = set()
        batch_numbers = self._batch_numbers(scanned.sources.arenas)
        for arch in self.archs:
            rows = pick_rows(scanned, Target(arch), optimizes=self.optimizes)
            packed = sharing.list_packed(rows, batch_numbers)
            repeated.update(numbers_seen.intersection(packed))
            numbers_seen.update(packed)
        self._repeated = repeated

    def decompress(self, rows: bytes, arenas: list[bytes]) -> tuple[bytes, list[bytes]]:
        """Decompress payloads; return PickRows and arenas that replace `rows` and `arenas`.

        A PickRow says in which arena a payload is, where, and how it is compressed. Damaged
        payloads stay compressed, and so do payloads that no other link takes.
        """
        batch_numbers = self._batch_numbers(arenas)
        with self._lock:
            first_store = len(arenas)  # the number of the first store among the arenas returned
            stored, missing = sharing.replace_packed(
                rows, batch_numbers, first_store, self._payload_places, self._repeated
            )
            if missing:
                try:
                    store, extents = payloads.gather(missing, arenas, _no_contents)
                except MemoryError:
                    return rows, arenas
                sharing.record_unpacked(
                    missing, batch_numbers, extents, len(self._stores), self._payload_places
                )
                self._stores.append(store)
                stored, _ = sharing.replace_packed(
                    rows, batch_numbers, first_store, self._payload_places, frozenset()
                )
            return stored, [*arenas, *self._stores]

    def gather(self, rows: bytes, arenas: list[bytes]) -> tuple[bytes, bytes] | None:
        """Return an arena with the payloads of the PickRows `rows`, and their extents.

        It is the shared arena that has nearly all of them; the others are written to its tail.
        None if that is not possible, e.g. since they do not fit into the tail.
        """
        return None if self._tail is None else payloads.gather_in_place(rows, arenas, self._tail)

    def _batch_numbers(self, arenas: Sequence[bytes]) -> bytes:
        """Return the number of the batch of each arena, as int32.

        -1 for an arena of one link alone.
        """
        numbers = {id(batch.arena): number for number, batch in enumerate(self._batches)}
        return b"".join(
            numbers.get(id(arena), -1).to_bytes(4, "little", signed=True) for arena in arenas
        )


def _keys(inputs: Sequence[Input]) -> list[str | int]:
    """Return the key of each input: its path, or the id of its contents."""
    return [source.name if source.data is None else id(source.data) for source in inputs]


def _is_in(place: tuple[int, int] | None, batch_number: int) -> bool:
    """Return whether an input with this place (None: not read) is in a batch."""
    return place is not None and place[0] == batch_number


def _no_contents(number: int) -> bytes:
    """Return the empty contents of a payload that cannot be decompressed."""
    return b""


def _measure(source: Input, plan: OutputPlan, sink: Sink) -> tuple[bytes | None, int]:
    """Return what `measure_input` returns, but size 0 for an input that cannot be read."""
    file = source.name if source.data is None else source.path
    if file is not None:
        plan.check_input(file, sink)
    try:
        return measure_input(source, OutputPlan({}, (), sink), Sink())
    except LinkError:
        return None, 0
