"""Mercury vectors in native form, and the comparison of two objects or of one with many."""

from typing import TypeAlias

from typing_extensions import Buffer

# Name, kind (0 null, 1 named, 2 section, 3 private to its file), type and binding of a symbol.
SymbolFacts: TypeAlias = tuple[bytes, int, int, int]
# Number of section headers and of relocation sections (targets), a sum over the keys of each
# (hashes; modulo 2**64), and whether all keys differ.
Signature: TypeAlias = tuple[int, int, int, int, bool]

class Result:
    """Why a candidate folds or does not, and the work that this took.

    A candidate folds if the Mercury sections of another file, the reference, can replace its own.
    `why` is a row of `pylink.mercury.reasons.REASONS`. `index` is the entry of the candidate's
    vector that fails, and `twin` the one of the reference that it was compared with. `offset` is
    the first differing byte or the failing relocation entry, `symbol` the symbol index that
    differs, `moved_header` the first header of the candidate whose twin is at another position. A
    number that does not apply is -1. `counts` are the fields of `WorkCounts` in
    `mercury/objects.pxd`: memcmp calls, bytes compared, bytes offered, twin probes, prefilter hits,
    false positives, and nanoseconds of stages 1, 2 and 3.
    """

    why: int
    index: int
    twin: int
    offset: int
    symbol: int
    moved_header: int
    counts: tuple[int, ...]

class Vectors:
    """The vectors of one object: primary data, section headers and relocation targets.

    Only symbols, digests and lookup tables are added later.

    `primary` holds the bytes of sections, `headers` rows (name, sh_size, sh_link and sh_info as one
    u64, sh_addralign, whose low 32 bits count), `targets` rows (name, bytes). Keys of the lookup
    tables are cut to the bits of `key_mask`. Raises OverflowError for a field that does not fit.
    """

    def __init__(
        self,
        primary: tuple[Buffer, ...],
        headers: tuple[tuple[bytes, int, int, int], ...],
        targets: tuple[tuple[bytes, Buffer], ...],
        key_mask: int,
    ) -> None: ...
    def attach_symbols(
        self,
        symtab: Buffer,
        strtab: Buffer,
        sections: tuple[bytes | None, ...],
        places: tuple[bytes, ...],
        attributes: Buffer,
        kinds: bytes,
    ) -> None:
        """Read the symbol table that the targets' Elf64_Rela entries index.

        `sections[i]` is the name of the section with index i if its header is compared, else None;
        `places[i]` the name of the section that target i relocates. `attributes` are the attribute
        records of the whole file, `kinds` the other header fields of sections and targets, in any
        form. Raises IndexError if a name or a symbol number runs past its table.
        """
    @property
    def size(self) -> int:
        """Bytes of primary data and of relocation targets."""
    @property
    def has_symbols(self) -> bool:
        """Whether `attach_symbols` was called."""
    @property
    def is_self_contained(self) -> bool:
        """Whether a copy of this file could fold into it.

        False if a function that it defines, or a symbol that its relocations name, is private to
        the file: such an object neither accepts nor is accepted if symbols are compared. True
        without symbols.
        """
    def symbol(self, row: int) -> SymbolFacts:
        """Return name, kind, type and binding of the symbol with index `row`."""
    def shape(self) -> bytes:
        """Return the sizes of the primary entries as packed uint64."""
    def signature(self) -> Signature:
        """Return the numbers by which references for a candidate are found.

        A candidate whose keys all differ is only accepted by references with the same first four
        values: different rows equal different rows there, and these are all if the numbers agree.
        """
    def target_key(self, row: int) -> int:
        """Return the key of one target, a hash of its name without `.nv.merc` and of its size."""
    def find_target(self, key: int) -> int:
        """Return the row of the first target with `key`, or -1."""
    def list_missing_digests(self, reference: Vectors) -> list[int]:
        """List the rows of targets without digest whose key several targets of `reference` have.

        A digest is a hash of a target's bytes, for targets with equal keys. `reference` may be
        this object.
        """
    def set_digests(self, rows: list[int], digests: list[int]) -> None:
        """Fill the digests (uint64) of some targets. ValueError for one that is filled."""
    def digest(self, row: int) -> int | None:
        """Return the digest of one target, or None while it is not filled."""

def compare(reference: Vectors, candidate: Vectors, *, hashed: bool, symbols: bool) -> Result:
    """Decide whether `candidate` folds into `reference`.

    `hashed` finds equal entries by key instead of linearly. `symbols` checks, if both objects have
    symbols, that equal indices mean equal symbols. With `hashed` the result may be NEEDS_DIGESTS:
    fill those that `list_missing_digests` lists for both objects, and continue with
    `compare_targets`.
    """

def compare_targets(
    reference: Vectors, candidate: Vectors, first: Result, *, symbols: bool
) -> Result:
    """Compare the targets after `compare`, which returned `first`; counts have the work of both."""

def find_first_accepting(
    references: list[Vectors], candidate: Vectors, *, symbols: bool
) -> tuple[int, Result, Result]:
    """Compare with each reference in order, linearly, until one accepts.

    Returns the row of the reference that accepts, or -1; the result of the last comparison; and the
    same result with the work of all comparisons.
    """

def find_covering_shapes(shapes: list[bytes], candidate: bytes) -> list[int]:
    """List the rows of `shapes` that differ from `candidate` and have no smaller size than it.

    Shapes are packed uint64 (`Vectors.shape`), compared by position. A shape may have more sizes
    than the candidate's. Linear in the number of shapes.
    """
