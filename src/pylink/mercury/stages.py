"""Compares the Mercury sections of one file, the candidate, with those of a reference."""

from __future__ import annotations

from pylink._native import dedup as kernel
from pylink.facts.outcomes import FoldOutcome
from pylink.mercury.objects import MercuryObject
from pylink.mercury.prefilter import PREFILTERS, fill_targets
from pylink.mercury.reasons import REASONS, show_name
from pylink.mercury.stats import COUNTS, Stats

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink._native.dedup import Result

# Values of --identity: a fold requires equal symbols and bytes, or only equal bytes.
IDENTITIES = ("symbols", "bytes")
EXCERPT_SIZE = 8  # most bytes that a reason shows, from the first difference on
# By the kind of a symbol, which `Vectors.symbol` returns: the words in front of its name.
SYMBOL_KINDS = ("no symbol", "symbol", "the start of", "a symbol of its own file,")


class Verdict:
    """The result of comparing the Mercury sections of two objects, and the work.

    The candidate folds if the sections of the reference can replace its own. `code` is 0 (fold), 17
    (data), 19 (section headers) or 18 (relocation targets); `stage` is the stage that rejects (1, 2
    or 3), or None; `index` is the failing entry of the candidate's vector, None if no single entry
    fails. For the comparison, `digests` sections were hashed, `digest_bytes` bytes in total.
    """

    __slots__ = ("_result", "candidate", "digest_bytes", "digests", "reference")

    def __init__(
        self,
        reference: MercuryObject,
        candidate: MercuryObject,
        result: Result,
        digests: int = 0,
        digest_bytes: int = 0,
    ) -> None:
        self.reference = reference
        self.candidate = candidate
        self._result = result
        self.digests = digests
        self.digest_bytes = digest_bytes

    @property
    def reason_row(self) -> int:
        """The outcome, a number of `FoldOutcome`: a key of pylink.mercury.reasons.REASONS."""
        return self._result.why

    @property
    def code(self) -> int:
        """The code of the outcome: 0 if the candidate folds, else 17, 18 or 19."""
        return REASONS[self._result.why][0]

    @property
    def stage(self) -> int | None:
        """The stage that rejects the candidate; None if it folds."""
        return REASONS[self._result.why][1]

    @property
    def index(self) -> int | None:
        """The failing row of the candidate's vector for this stage; None if no single row fails."""
        result = self._result
        return None if result.why == FoldOutcome.ACCEPTED or result.index < 0 else result.index

    @property
    def offset(self) -> int | None:
        """The first difference; None if nothing differs, or if the difference has no place.

        For code 17 it is the offset of a byte in a section's contents, for code 18 the number of a
        relocation.
        """
        result = self._result
        return None if result.why == FoldOutcome.ACCEPTED or result.offset < 0 else result.offset

    @property
    def symbol(self) -> int | None:
        """The number of the symbol that differs between candidate and reference, or None."""
        return None if self._result.symbol < 0 else self._result.symbol

    @property
    def stats(self) -> Stats:
        """The work of this comparison."""
        return Stats(1, self._result.counts, self.digests, self.digest_bytes)

    @property
    def entry(self) -> str | None:
        """The name of the failing section or relocation target; None if no single one fails."""
        index = self.index
        if index is None:
            return None
        if self.stage == 1:
            return self.candidate.entry_name(index)
        rows = self.candidate.headers if self.stage == 2 else self.candidate.targets
        return show_name(rows[index][0])

    @property
    def reason(self) -> str:
        """The reason as a sentence."""
        return REASONS[self._result.why][2].format_map(self._facts())

    def _facts(self) -> dict[str, object]:
        """Return the values of the placeholders in the sentences of REASONS, by placeholder."""
        ref, cand, index, offset = self.reference, self.candidate, self.index, self.offset
        facts: dict[str, object] = {"entry": self.entry, "offset": offset}
        if self.stage == 1 and index is not None:
            facts["candidate"], facts["reference"] = len(cand.primary), len(ref.primary)
            if index < len(ref.primary) and offset is not None:
                facts["entry"] = _name_entries(cand.entry_name(index), ref.entry_name(index))
                candidate_bytes, reference_bytes = cand.primary[index], ref.primary[index]
                facts["candidate"], facts["reference"] = len(candidate_bytes), len(reference_bytes)
                if offset < min(len(candidate_bytes), len(reference_bytes)):
                    end = offset + EXCERPT_SIZE
                    facts["candidate"] = bytes(candidate_bytes[offset:end]).hex(" ")
                    facts["reference"] = bytes(reference_bytes[offset:end]).hex(" ")
        elif self.stage == 2:
            facts["candidate"], facts["reference"] = len(cand.headers), len(ref.headers)
            if index is not None:
                _, facts["q0"], facts["q8"], facts["align"] = cand.headers[index]
        elif self.stage == 3:
            facts["candidate"], facts["reference"] = len(cand.targets), len(ref.targets)
            if index is not None:
                facts["size"] = len(cand.targets[index][1])
            if self.symbol is not None:
                facts["symbol"] = _describe_symbol(cand, self.symbol)
                facts["twin"] = _describe_symbol(ref, self.symbol)
        return facts

    def __repr__(self) -> str:
        return f"Verdict(code={self.code}, stage={self.stage}, index={self.index})"


def _name_entries(name: str, reference_name: str) -> str:
    """Return the name of an entry, with the reference's name if that is another section."""
    return name if name == reference_name else f"{name}, where the reference has {reference_name},"


def _describe_symbol(item: MercuryObject, row: int) -> str:
    """Return a symbol as text: number, kind and name."""
    try:
        name, kind, _, _ = item.vectors.symbol(row)
    except IndexError:
        return f"[{row}], which does not exist"
    return f"[{row}] {SYMBOL_KINDS[kind]} {show_name(name)}".rstrip()


class Tally:
    """The work of many comparisons, summed on demand.

    `compared` has a verdict for each comparison. If native code compares a candidate with several
    objects in one call, they have one verdict together, with the work of all. `results` has what
    native code returned, and `pairs` counts the compared pairs of objects.
    """

    __slots__ = ("compared", "digest_bytes", "digests", "pairs", "results")

    def __init__(self) -> None:
        self.pairs = 0
        self.results: list[Result] = []
        self.compared: list[Verdict] = []
        self.digests = 0
        self.digest_bytes = 0

    def count_digests(self, sections: int, size: int) -> None:
        """Count the digests of `sections` sections, which have `size` bytes in total."""
        self.digests += sections
        self.digest_bytes += size

    def stats(self) -> Stats:
        """Return the work of all comparisons so far."""
        columns = zip(*(result.counts for result in self.results), strict=True)
        counts = list(map(sum, columns)) or [0] * COUNTS
        return Stats(self.pairs, counts, self.digests, self.digest_bytes)


def check_options(prefilter: str, identity: str) -> tuple[bool, bool]:
    """Check the options; return whether to use hashes, and whether to compare symbols.

    Raises ValueError for an unknown value.
    """
    if prefilter not in PREFILTERS:
        raise ValueError(f"prefilter is one of {', '.join(PREFILTERS)}, not {prefilter!r}")
    if identity not in IDENTITIES:
        raise ValueError(f"identity is one of {', '.join(IDENTITIES)}, not {identity!r}")
    return prefilter == "xxh3", identity == "symbols"


def compare(
    reference: MercuryObject,
    candidate: MercuryObject,
    *,
    prefilter: str = "xxh3",
    identity: str = "symbols",
) -> Verdict:
    """Decide whether `candidate` folds into `reference`.

    `prefilter` is "xxh3" (counterparts of headers and relocation sections are found by hash and
    confirmed by their fields and bytes) or "none" (linear search); the verdict is the same.
    `identity` is "symbols" (a symbol number that relocations use must mean equal symbols in both
    objects, if both have a symbol table) or "bytes".
    """
    hashed, symbols = check_options(prefilter, identity)
    return decide(reference, candidate, hashed=hashed, symbols=symbols)


def decide(
    reference: MercuryObject,
    candidate: MercuryObject,
    total: Tally | None = None,
    *,
    hashed: bool = True,
    symbols: bool,
) -> Verdict:
    """Decide whether `candidate` folds into `reference`, and add the work to `total`, if given.

    `hashed` and `symbols` are the values that `check_options` returns.
    """
    result = kernel.compare(reference.vectors, candidate.vectors, hashed=hashed, symbols=symbols)
    if result.why == FoldOutcome.NEEDS_DIGESTS:
        tally = Tally()
        reference_vectors = reference.vectors
        fill_targets(reference, reference_vectors.list_missing_digests(reference_vectors), tally)
        fill_targets(candidate, candidate.vectors.list_missing_digests(reference_vectors), tally)
        result = kernel.compare_targets(
            reference_vectors, candidate.vectors, result, symbols=symbols
        )
        verdict = Verdict(reference, candidate, result, tally.digests, tally.digest_bytes)
    else:
        verdict = Verdict(reference, candidate, result)
    if total is not None:
        total.pairs += 1
        total.results.append(result)
        total.compared.append(verdict)
        total.digests += verdict.digests
        total.digest_bytes += verdict.digest_bytes
    return verdict
