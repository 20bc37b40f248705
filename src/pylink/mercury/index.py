"""Finds the kept objects that could accept a candidate.

An object accepts a candidate only under conditions that can be checked without a comparison. So a
build of N objects need not compare N*N pairs:

* Both have equal numbers of headers and of targets, and each of the candidate's header keys and
  target keys (hashes of names, sizes and fields) occurs in the reference. When the candidate
  repeats no key, its twins are all different, so both have the same keys, and the sums of the keys
  are equal. These numbers and sums are the object's signature.
* No primary entry of the candidate is longer than the reference's at the same position. The sizes
  of an object's primary entries are its shape.
* The bytes at each position are equal; if sizes are equal, too, so are the digests of the bytes.

Objects of one signature and one shape are in a tree. A leaf lists the kept objects that are not
distinguished yet. If a candidate is rejected by the first object of a leaf and is kept itself, the
leaf becomes a branching point: the section that differs is hashed in all its objects, and they,
like later candidates, branch by this digest. So a section is hashed only if sizes are equal, at
most once, and only if some pair differs in it; identical objects meet in one leaf.

Cost: every section hashed at most once, and for a candidate one comparison per object in its leaf.
A leaf grows only by objects that differ only in symbols or have colliding digests. A candidate that
repeats a key is compared with the objects with its numbers of headers and targets, up to the first
that accepts it; native code does that in one call if the candidate is small. Objects whose headers
do not hold the sizes of sections may have one signature and several shapes: a candidate is compared
with the objects of all shapes that are large enough.
"""

from __future__ import annotations

from pylink._native.dedup import find_covering_shapes
from pylink.facts.outcomes import FoldOutcome
from pylink.mercury.prefilter import primary_digest, target_digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink._native.dedup import Vectors
    from pylink.mercury.objects import MercuryObject
    from pylink.mercury.stages import Tally, Verdict

    # The section by whose digest a node branches, after the number of the stage that compares it:
    # (1, row in the list of sections' contents) or (3, key of a relocation section).
    BranchingPoint = tuple[int, int]


# An object that repeats a key is compared with the kept objects that have its numbers of headers
# and targets, up to the first that accepts it: in one call of native code if the sum of these
# numbers is at most this, else one by one from Python.
MOST_WALKED_ROWS = 256


class Node:
    """A leaf with objects (`rows`), or a branching point with a child for each digest.

    `point` says which section's digest; it is None in a leaf.
    """

    __slots__ = ("children", "point", "rows")

    def __init__(self, rows: list[int]) -> None:
        self.rows = rows
        self.point: BranchingPoint | None = None
        self.children: dict[int, Node] = {}


class Tree:
    """The kept objects with one signature and one shape; `members` are the rows of all of them.

    A signature has the numbers of headers and of relocation sections, and sums of their keys, which
    are hashes of names, sizes and fields. A shape has the sizes of sections' contents.
    """

    __slots__ = ("members", "root")

    def __init__(self) -> None:
        self.root = Node([])
        self.members: list[int] = []


class Forest:
    """The trees of objects with one signature, by shape: the sizes of an object's contents."""

    __slots__ = ("shapes", "trees")

    def __init__(self) -> None:
        self.trees: dict[bytes, Tree] = {}
        self.shapes: list[bytes] = []

    def tree(self, shape: bytes) -> Tree:
        """Return the tree of one shape, created if missing."""
        if shape not in self.trees:
            self.trees[shape] = Tree()
            self.shapes.append(shape)
        return self.trees[shape]


class KeptObjects:
    """Kept objects (which did not fold) in order: their rows, and vectors for native code."""

    __slots__ = ("rows", "vectors")

    def __init__(self) -> None:
        self.rows: list[int] = []
        self.vectors: list[Vectors] = []

    def add(self, row: int, item: MercuryObject) -> None:
        """Add an object, which is the last so far, and its row among all objects."""
        self.rows.append(row)
        self.vectors.append(item.vectors)


class FoldIndex:
    """The kept objects of a build, by properties that an object must share to fold into one."""

    def __init__(self, objects: list[MercuryObject], tally: Tally) -> None:
        self.objects = objects
        self.tally = tally
        # The added objects by numbers of headers and of targets. Those that repeat no key are also
        # in forests, by the first four numbers of their signature.
        self.by_count: dict[tuple[int, int], KeptObjects] = {}
        self.forests: dict[tuple[int, ...], Forest] = {}

    # The last item of a signature says whether all keys of an object differ. If so, only objects
    # with the same first four numbers can accept it (see `_native/dedup.pyi`).
    def needs_walk(self, item: MercuryObject) -> bool:
        """Return whether `item` repeats a key, and so is compared with its `candidates` in order.

        False also if it is so large that comparing all in native code, without hashes, would cost
        more than calls from Python.
        """
        headers, targets, _, _, distinct = item.signature()
        return not distinct and headers + targets <= MOST_WALKED_ROWS

    def candidates(self, item: MercuryObject) -> KeptObjects:
        """Return the kept objects with as many headers and targets as `item`."""
        return self.by_count.get(item.signature()[:2]) or KeptObjects()

    def find(self, item: MercuryObject) -> list[int]:
        """Return the rows of the kept objects that could accept `item`, in ascending order."""
        signature = item.signature()
        if not signature[4]:
            return self.candidates(item).rows
        forest = self.forests.get(signature[:4])
        if forest is None:
            return []
        shape = item.vectors.shape()
        tree = forest.trees.get(shape)
        rows = [] if tree is None else self._leaf(tree.root, item)[0].rows
        if len(forest.trees) > (tree is not None):
            # Rows of `forest.shapes` in which no section is smaller than in `item`.
            covering_shapes = find_covering_shapes(forest.shapes, shape)
            if covering_shapes:
                trees = [forest.trees[forest.shapes[other]] for other in covering_shapes]
                rows = sorted({*rows, *(row for other in trees for row in other.members)})
        return rows

    def add(self, row: int, verdicts: dict[int, Verdict]) -> None:
        """Add object `row`, which is kept; `verdicts` has its comparisons, by row of the other."""
        item = self.objects[row]
        signature = item.signature()
        self.by_count.setdefault(signature[:2], KeptObjects()).add(row, item)
        if not signature[4]:
            return
        tree = self.forests.setdefault(signature[:4], Forest()).tree(item.vectors.shape())
        tree.members.append(row)
        leaf, path = self._leaf(tree.root, item)
        if leaf.rows:
            verdict = verdicts.get(leaf.rows[0])
            point = None if verdict is None else _branching_point(verdict)
            if point is not None and point not in path:
                leaf.point = point
                for other in (*leaf.rows, row):
                    digest = self._digest(self.objects[other], point)
                    leaf.children.setdefault(digest, Node([])).rows.append(other)
                leaf.rows = []
                return
        leaf.rows.append(row)

    def _leaf(self, node: Node, item: MercuryObject) -> tuple[Node, list[BranchingPoint]]:
        """Return the leaf of `item`, created if missing, and the branching points on the way."""
        path: list[BranchingPoint] = []
        while node.point is not None:
            path.append(node.point)
            digest = self._digest(item, node.point)
            child = node.children.get(digest)
            if child is None:
                child = node.children[digest] = Node([])
            node = child
        return node, path

    def _digest(self, item: MercuryObject, point: BranchingPoint) -> int:
        """Return the digest of the object's section that `point` names; -1 if it has none."""
        stage, row_or_key = point
        if stage == 1:
            return primary_digest(item, row_or_key, self.tally)
        row = item.vectors.find_target(row_or_key)
        return -1 if row < 0 else target_digest(item, row, self.tally)


def _branching_point(verdict: Verdict) -> BranchingPoint | None:
    """Return the section whose digest distinguishes the objects of `verdict`; None if none does."""
    index = verdict.index
    if index is not None and verdict.reason_row == FoldOutcome.BYTES_DIFFER:
        return 1, index
    if index is not None and verdict.reason_row == FoldOutcome.TARGET_TWIN:
        return 3, verdict.candidate.vectors.target_key(index)
    return None
