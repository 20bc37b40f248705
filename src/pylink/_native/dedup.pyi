"""Mercury vectors in native form, and the comparison of two objects or of one with many."""

from typing import TypeAlias

from typing_extensions import Buffer

# Name, kind (0 null, 1 named, 2 section, 3 private), type and binding.
SymbolFacts: TypeAlias = tuple[bytes, int, int, int]
# Headers, targets, sum over header keys, sum over target keys, and whether all keys differ.
Signature: TypeAlias = tuple[int, int, int, int, bool]

class Result:
    """Why a candidate folds or does not, and the work that this took.

    `why` is an index into `pylink.mercury.reasons.REASONS`. `index` is the entry of the candidate
    that fails, and `twin` the one of the reference that it was compared with. `offset` is the first
    differing byte or relocation, `moved_header` the first header whose twin has another place. A
    row that does not apply is -1. `counts` are memcmp calls, bytes compared, bytes offered, twin
    probes, prefilter hits, false positives, and nanoseconds of stages 1, 2 and 3.
    """

    why: int
    index: int
    twin: int
    offset: int
    symbol: int
    moved_header: int
    counts: tuple[int, ...]

class Vectors:
    """One object's vectors; frozen except for digests and tables, filled when first needed.

    `primary` holds read-only buffers, `headers` rows (name, q0, q8, addralign), `targets` rows
    (name, payload). Names are bytes; q0 and q8 are qwords, of addralign the low dword counts.
    Keys of the lookup tables are cut to the bits of `key_mask`. Raises OverflowError for a field
    that does not fit.
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

        `sections[i]` is the name of section i when its header is compared, `places[i]` the name of
        the section that target i relocates; `attributes` the file-level attribute records, `kinds`
        the other fields of the section headers of sections and targets, in any form. Raises
        IndexError if a name or a symbol number runs past its table.
        """
    @property
    def size(self) -> int:
        """Bytes of all payloads."""
    @property
    def has_symbols(self) -> bool: ...
    @property
    def self_contained(self) -> bool:
        """Whether a copy of this file could fold into it.

        False as soon as a function described or a symbol used is private to the file; such an
        object neither accepts nor is accepted where symbols count. True without symbols.
        """
    def symbol(self, row: int) -> SymbolFacts:
        """The facts of one symbol."""
    def shape(self) -> bytes:
        """Sizes of the primary entries as packed uint64."""
    def signature(self) -> Signature:
        """The columns that must agree for a candidate to be accepted.

        A candidate without repeated keys is only accepted by references with the same
        first four values: with equal numbers of rows, twins of different rows are different rows.
        """
    def target_key(self, row: int) -> int:
        """The key over stripped name and size of one target."""
    def target_with_key(self, key: int) -> int:
        """Row of the first target with `key`, or -1."""
    def missing_digests(self, reference: Vectors) -> list[int]:
        """Rows without digest whose key ties in `reference`, which may be this object."""
    def set_digests(self, rows: list[int], digests: list[int]) -> None:
        """Fill the digests (uint64) of some targets; once for each."""
    def digest(self, row: int) -> int | None:
        """The digest of one target, or None while it is not filled."""

def compare(reference: Vectors, candidate: Vectors, *, hashed: bool, symbols: bool) -> Result:
    """Decide whether `candidate` folds into `reference`.

    `hashed` finds twins by key instead of linearly; `symbols` checks, where both objects have
    symbols, that equal indices mean equal symbols. With `hashed` the result may be NEEDS_DIGESTS:
    fill those that `missing_digests` names and go on with `compare_targets`.
    """

def compare_targets(
    reference: Vectors, candidate: Vectors, first: Result, *, symbols: bool
) -> Result:
    """Continue `compare`, whose result is `first`, with stage 3; counts have the work of both."""

def first_accepting(
    references: list[Vectors], candidate: Vectors, *, symbols: bool
) -> tuple[int, Result, Result]:
    """Compare with each reference in order, linearly, until one accepts.

    Returns its row or -1, the result of the last comparison, and this with the total work.
    """

def covering(shapes: list[bytes], candidate: bytes) -> list[int]:
    """Rows of the shapes, other than the candidate's own, into which each of its sizes fits.

    Shapes are packed uint64, see Vectors.shape. Linear in the number of shapes.
    """
