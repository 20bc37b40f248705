"""Where the bytes of files are, as a page without network: a map that zooms, and tables to read."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pylink import __version__
from pylink.diagnostics.stream import printable
from pylink.report.view.template import page_from
from pylink.size.levels import rows
from pylink.size.model import CUBIN, DEVICE, LTOIR, PTX, RELOCATABLE, RELOCATABLE_PTX, Leaf
from pylink.size.numbers import bytes_text
from pylink.size.reductions import COMPRESSION, Reduction, reductions
from pylink.size.screen import summary_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylink.size.model import Sizes

# Parts of one node that are shown one by one; the rest is one more.
MOST_PARTS = 40
# Parts of less than this share of everything are not shown one by one, on two levels from the
# outside.
_LEAST = 1 / 5000
# Levels of the map, from the outside in. A kind and a target are one.
_OUTER = ("archive", "file", "kind", "target")
_INNER = ("template", "function")
_NAME = 72

COLORS = {
    CUBIN: "#2f6fb2",
    RELOCATABLE: "#6a51a3",
    PTX: "#2c7a4b",
    RELOCATABLE_PTX: "#4d7014",
    LTOIR: "#0f6f68",
}
OTHER, GONE = "#5b6577", "#b45f06"


@dataclass
class Node:
    """A part with its bytes; `gone` are those that could go, of the measure that the map shows.

    Parts of fewer bytes than `least` are not shown one by one. `target` is that of a part which has
    a kind and a target.
    """

    name: str
    kind: str = ""
    target: str = ""
    size: int = 0
    installed: int = 0
    unpacked: int = 0
    download: int = 0
    gone: int = 0
    estimated: bool = False
    is_file: bool = False
    least: float = 0.0
    parts: dict[str, Node] = field(default_factory=dict)

    def largest(self) -> list[Node]:
        """The parts, the largest first; the smallest as one, so that they add up."""
        ordered = sorted(self.parts.values(), key=lambda node: (-node.size, node.name))
        count = min(MOST_PARTS, sum(node.size >= self.least for node in ordered))
        head, rest = ordered[:count], ordered[count:]
        if len(rest) == 1:
            head.append(rest.pop())
        if rest:
            others = Node(f"{len(rest):,} others", rest[0].kind)
            for node in rest:
                others.size += node.size
                others.installed += node.installed
                others.unpacked += node.unpacked
                others.download += node.download
                others.gone += node.gone
                others.estimated = others.estimated or node.estimated
            head.append(others)
        return head


def size_tree(sizes: Sizes) -> Node:
    """Everything as a tree: archive, file, kind and target, template, function.

    The bytes of a node are those of its parts. Levels of which there is one name for all are
    omitted, except for the last.
    """
    several = len({file.archive for file in sizes.files if file.archive}) > 1
    root = Node("all")
    for row in rows(sizes, (*_OUTER, *_INNER)):
        archive, file, kind, target, template, function = row.keys
        named = "" if target.startswith("(") else f" {target}"
        path = [archive] if several else []
        at_file = len(path)
        path += [file, f"{kind}{named}"]
        if kind in DEVICE:
            path += [template] if template == function else [template, function]
        size = row.download if sizes.downloads else row.installed
        node = root
        for depth, step in enumerate((None, *path)):
            if step is not None:
                node = node.parts.setdefault(step, Node(printable(step), kind))
                node.is_file = depth == at_file + 1
                node.target = named.strip() if depth == at_file + 2 else ""
            node.size += size
            node.installed += row.installed
            node.unpacked += row.unpacked
            node.download += row.download
            node.estimated = node.estimated or (bool(row.functions) and row.estimated)
    _mark_gone(sizes, root, several=several)
    _finish(root, root.size * _LEAST)
    return root


def _finish(node: Node, least: float) -> None:
    """Entries and what is around them have exact sizes; small parts inside of these are merged."""
    node.least = least
    if any(part.parts for part in node.parts.values()):
        node.estimated = False
    for part in node.parts.values():
        _finish(part, least)


def _mark_gone(sizes: Sizes, root: Node, *, several: bool) -> None:
    """What could go by rules of class A and B that take entries away, each entry once."""
    leaves: dict[int, Leaf] = {}
    for line in reductions(sizes):
        if line.letter != "C" and line.rule not in COMPRESSION and line.leaves:
            leaves |= {id(leaf): leaf for leaf in line.leaves if not leaf.savings}
    for leaf in leaves.values():
        file = sizes.files[leaf.file]
        path = [file.archive] if several else []
        path += [file.name, f"{leaf.kind} {leaf.target}"]
        size = (leaf.download or 0) if sizes.downloads else leaf.installed
        node = root
        node.gone += size
        for step in path:
            node = node.parts[step]
            node.gone += size


def page(sizes: Sizes, title: str) -> str:
    """The page; names from files are escaped in it."""
    tree = size_tree(sizes)
    could_go = reductions(sizes)
    measure = "download" if sizes.downloads else "installed"
    return page_from(
        "sizes.html.j2",
        version=__version__,
        title=printable(title),
        summary=summary_lines(sizes)[0],
        measure=measure,
        tree=tree,
        data=_script_data(tree, downloads=sizes.downloads),
        colours=COLORS,
        key=[*COLORS.items(), ("other", OTHER), ("could go", GONE)],
        other=OTHER,
        downloads=sizes.downloads,
        lines=_lines(could_go),
        text=lambda size, _unit: bytes_text(size),
        shown=bytes_text,
        percent=lambda part, whole: 100 * part / whole if whole else 0.0,
        shorten=_shorten,
        unreadable=[(printable(name), printable(reason)) for name, reason in sizes.unreadable],
    )


def _lines(could_go: Sequence[Reduction]) -> list[tuple[Reduction, str, str]]:
    return [
        (
            line,
            "" if line.download is None else bytes_text(line.download, line.estimated),
            bytes_text(line.installed, line.estimated),
        )
        for line in could_go
    ]


def _shorten(name: str) -> str:
    return name if len(name) <= _NAME else f"{name[: _NAME - 1]}\u2026"


def _script_data(tree: Node, *, downloads: bool) -> str:
    """The tree for the script: no text in it ends the script or begins a comment of HTML."""

    def of(node: Node) -> dict[str, object]:
        row: dict[str, object] = {"n": node.name, "s": node.size, "k": node.kind}
        if node.is_file:
            row["b"] = node.name.rpartition("/")[2]
        if node.target:
            row["t"] = printable(node.target)
        row["i"], row["u"] = node.installed, node.unpacked
        if downloads:
            row["d"] = node.download
        if node.gone:
            row["g"] = node.gone
        if node.estimated:
            row["e"] = 1
        if node.parts:
            row["c"] = [of(part) for part in node.largest() if part.size]
        return row

    text = json.dumps(of(tree), separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text
