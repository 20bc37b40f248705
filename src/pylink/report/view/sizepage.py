"""Creates the HTML page of `pylink size`: a map that zooms, and tables. It works offline."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from pylink import __version__
from pylink.diagnostics.stream import printable
from pylink.report.view.template import page_from
from pylink.size.levels import rows
from pylink.size.model import (
    CUBIN,
    DEVICE_KINDS,
    LTOIR,
    PTX,
    RELOCATABLE,
    RELOCATABLE_PTX,
    Leaf,
    Reduction,
)
from pylink.size.reductions import COMPRESSION, reductions
from pylink.size.screen import summary_lines
from pylink.terminal.numbers import bytes_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylink.size.model import Sizes

# Limit of the parts of one node that are shown; the smaller ones are combined.
MAX_PARTS = 40
# Parts below this share of the total are combined.
_LEAST_SHARE = 1 / 5000
# Columns of `rows` that are the levels of the map, from the outside in. Kind and target form one
# level. Only device code has the inner levels.
_OUTER = ("archive", "file", "kind", "target")
_INNER = ("template", "function")
_NAME_LENGTH = 72  # characters of a name in a table

# Colors in the map by kind of device code, that of other bytes, and that of removable bytes.
COLORS = {
    CUBIN: "#2f6fb2",
    RELOCATABLE: "#6a51a3",
    PTX: "#2c7a4b",
    RELOCATABLE_PTX: "#4d7014",
    LTOIR: "#0f6f68",
}
OTHER, REMOVABLE_COLOR = "#5b6577", "#b45f06"


@dataclass
class Node:
    """A node of the map, such as a file or a function, with its bytes.

    `size` is `download` (compressed, as in the archive) if the map shows downloads, or `installed`.
    `removable` bytes of it could be removed. `estimated` means that bytes were divided among
    functions in proportion to unpacked bytes. Parts smaller than `least` are combined. Only nodes
    on the level of kinds and targets have a `target`.
    """

    name: str
    kind: str = ""
    target: str = ""
    size: int = 0
    installed: int = 0
    unpacked: int = 0
    download: int = 0
    removable: int = 0
    estimated: bool = False
    is_file: bool = False
    least: float = 0.0
    parts: dict[str, Node] = field(default_factory=dict)

    def largest(self) -> list[Node]:
        """Return the parts, largest first; the smallest are combined into a node "N others"."""
        ordered = sorted(self.parts.values(), key=lambda node: (-node.size, node.name))
        count = min(MAX_PARTS, sum(node.size >= self.least for node in ordered))
        largest_nodes, combined = ordered[:count], ordered[count:]
        if len(combined) == 1:
            largest_nodes.append(combined.pop())
        if combined:
            others = Node(f"{len(combined):,} others", combined[0].kind)
            for node in combined:
                others.size += node.size
                others.installed += node.installed
                others.unpacked += node.unpacked
                others.download += node.download
                others.removable += node.removable
                others.estimated = others.estimated or node.estimated
            largest_nodes.append(others)
        return largest_nodes


def size_tree(sizes: Sizes) -> Node:
    """Return all sizes as a tree: archive, file, kind and target, template, function.

    The size of a node is the sum of its parts. There are archives only if `sizes` has several, and
    no templates for functions that are not instances of one.
    """
    has_archive_level = len({file.archive for file in sizes.files if file.archive}) > 1
    root = Node("all")
    for row in rows(sizes, (*_OUTER, *_INNER)):
        archive, file, kind, target, template, function = row.keys
        target_text = "" if target.startswith("(") else f" {target}"
        path = [archive] if has_archive_level else []
        file_depth = len(path)
        path += [file, f"{kind}{target_text}"]
        if kind in DEVICE_KINDS:
            path += [template] if template == function else [template, function]
        size = row.download if sizes.downloads else row.installed
        node = root
        for depth, step in enumerate((None, *path)):
            if step is not None:
                node = node.parts.setdefault(step, Node(printable(step), kind))
                node.is_file = depth == file_depth + 1
                node.target = target_text.strip() if depth == file_depth + 2 else ""
            node.size += size
            node.installed += row.installed
            node.unpacked += row.unpacked
            node.download += row.download
            node.estimated = node.estimated or (bool(row.functions) and row.estimated)
    _mark_removable(sizes, root, has_archive_level=has_archive_level)
    _set_limits(root, root.size * _LEAST_SHARE)
    return root


def _set_limits(node: Node, least: float) -> None:
    """Set `least` in all nodes, and clear `estimated` in those whose parts have parts.

    The sizes of files and archives, for example, are exact.
    """
    node.least = least
    if any(part.parts for part in node.parts.values()):
        node.estimated = False
    for part in node.parts.values():
        _set_limits(part, least)


def _mark_removable(sizes: Sizes, root: Node, *, has_archive_level: bool) -> None:
    """Set `removable` in all nodes, from the entries that size rules of class A or B would remove.

    Rules of class C, which would change the sources, and rules in `COMPRESSION` do not count.

    An entry, which is a leaf of `sizes`, counts once, even if several rules would remove it.
    Entries for which experiments measured `savings` do not count.
    """
    leaves: dict[int, Leaf] = {}
    for line in reductions(sizes):
        if line.letter != "C" and line.rule not in COMPRESSION and line.leaves:
            leaves |= {id(leaf): leaf for leaf in line.leaves if not leaf.savings}
    for leaf in leaves.values():
        file = sizes.files[leaf.file]
        path = [file.archive] if has_archive_level else []
        path += [file.name, f"{leaf.kind} {leaf.target}"]
        size = (leaf.download or 0) if sizes.downloads else leaf.installed
        node = root
        node.removable += size
        for step in path:
            node = node.parts[step]
            node.removable += size


def page(sizes: Sizes, title: str) -> str:
    """Return the HTML page; names from files are escaped."""
    tree = size_tree(sizes)
    size_reductions = reductions(sizes)
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
        key=[*COLORS.items(), ("other", OTHER), ("could go", REMOVABLE_COLOR)],
        other=OTHER,
        downloads=sizes.downloads,
        lines=_reduction_rows(size_reductions),
        text=lambda size, _unit: bytes_text(size),
        shown=bytes_text,
        percent=lambda part, total: 100 * part / total if total else 0.0,
        shorten=_shorten,
        unreadable=[(printable(name), printable(reason)) for name, reason in sizes.unreadable],
    )


def _reduction_rows(size_reductions: Sequence[Reduction]) -> list[tuple[Reduction, str, str]]:
    """Return each reduction with texts of the download bytes and installed bytes that it saves."""
    return [
        (
            line,
            "" if line.download is None else bytes_text(line.download, estimated=line.estimated),
            bytes_text(line.installed, estimated=line.estimated),
        )
        for line in size_reductions
    ]


def _shorten(name: str) -> str:
    """Return a name, cut if it is too long for a table."""
    return name if len(name) <= _NAME_LENGTH else f"{name[: _NAME_LENGTH - 1]}\u2026"


def _script_data(tree: Node, *, downloads: bool) -> str:
    """Return JSON of the tree for the script, escaped so that it cannot end the script element.

    Keys are one letter, since there are thousands of nodes: name, size, kind, base name, target,
    installed, unpacked, download, g (bytes that could go), estimated, children.
    """

    def node_row(node: Node) -> dict[str, object]:
        """Return a node with its children; see above for the keys."""
        row: dict[str, object] = {"n": node.name, "s": node.size, "k": node.kind}
        if node.is_file:
            row["b"] = node.name.rpartition("/")[2]
        if node.target:
            row["t"] = printable(node.target)
        row["i"], row["u"] = node.installed, node.unpacked
        if downloads:
            row["d"] = node.download
        if node.removable:
            row["g"] = node.removable
        if node.estimated:
            row["e"] = 1
        if node.parts:
            row["c"] = [node_row(part) for part in node.largest() if part.size]
        return row

    text = json.dumps(node_row(tree), separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text
