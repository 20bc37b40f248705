"""Differences of two builds by level, and sentences on the reasons.

Rows are matched by names that stay the same between releases: files without version, targets,
kinds, templates and functions. Differences add up to the total difference, like rows.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from pylink.size.levels import EVERYTHING, Row, Selection, rows
from pylink.size.model import DEVICE, Leaf, Sizes
from pylink.size.numbers import bytes_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_CODEC_WORDS = {"none": "stored", "lz4": "LZ4", "zstd": "zstd"}
# `1.2.3`, `.so.12.8` and the like between other parts of a name.
_VERSION = re.compile(
    r"(?<=[-_.])v?\d+(\.\d+)+([-_.+]?(post|dev|rc|a|b)\d+)*(?=[-_.]|$)|(?<=\.so)(\.\d+)+$"
)
# The least change of a template's unpacked bytes that has a line: a share of the total, and bytes.
_LEAST_SHARE, _LEAST_BYTES = 0.001, 1000
COLUMNS = ("unpacked", "installed", "download")


@dataclass
class Change:
    """A group of both builds; a build without it has zeros."""

    keys: tuple[str, ...]
    old: Row
    new: Row

    def difference(self, column: str) -> int:
        value: int = getattr(self.new, column) - getattr(self.old, column)
        return value


@dataclass
class Reason:
    """The reason of a change as text, with the difference of installed and unpacked bytes."""

    text: str
    installed: int
    unpacked: int


def stem(name: str) -> str:
    """The name of a file without versions, which is the same in all releases."""
    directory, slash, last = name.rpartition("/")
    if ".dist-info" in directory:
        directory = _VERSION.sub("", directory)
    return f"{directory}{slash}{_VERSION.sub('', last)}"


def changes(
    old: Sizes, new: Sizes, by: Sequence[str], selection: Selection = EVERYTHING
) -> list[Change]:
    """The groups of both builds, largest difference first."""
    before, after = (_by_key(sizes, by, selection) for sizes in (old, new))
    changed = [
        Change(key, before.get(key, Row(key)), after.get(key, Row(key)))
        for key in dict.fromkeys([*before, *after])
    ]
    column = column_of(old, new)
    changed.sort(key=lambda change: (-abs(change.difference(column)), change.keys))
    return changed


def column_of(old: Sizes, new: Sizes) -> str:
    """The column that decides order: the download if both builds have one."""
    return "download" if old.downloads and new.downloads else "installed"


def _by_key(sizes: Sizes, by: Sequence[str], selection: Selection) -> dict[tuple[str, ...], Row]:
    totals: dict[tuple[str, ...], Row] = {}
    only_file = _only_file(sizes)
    for row in rows(sizes, by, selection):
        key = tuple(
            _plain_name(name, only_file) if level in ("file", "archive") else name
            for level, name in zip(by, row.keys, strict=True)
        )
        total = totals.setdefault(key, Row(key))
        for column in ("count", *COLUMNS):
            setattr(total, column, getattr(total, column) + getattr(row, column))
        total.estimated = total.estimated or row.estimated
    return totals


def _only_file(sizes: Sizes) -> str:
    """The name of the only measured file or archive, or "": its directories are ignored."""
    outer = {file.archive or file.name for file in sizes.files}
    return outer.pop() if len(outer) == 1 else ""


def _plain_name(name: str, only_file: str) -> str:
    return stem(name.rpartition("/")[2] if name == only_file else name)


def reasons(old: Sizes, new: Sizes) -> list[Reason]:
    """Reasons: targets added or gone, other compression, templates new, gone or grown."""
    sentences = [*_targets(old, new), *_templates(old, new)]
    sentences.sort(key=lambda reason: (-abs(reason.installed), reason.text))
    return sentences


def _groups(sizes: Sizes) -> dict[tuple[str, str], list[Leaf]]:
    groups: dict[tuple[str, str], list[Leaf]] = {}
    for leaf in sizes.leaves:
        if leaf.kind in DEVICE:
            groups.setdefault((leaf.kind, leaf.target), []).append(leaf)
    return groups


def _targets(old: Sizes, new: Sizes) -> list[Reason]:
    before, after = _groups(old), _groups(new)
    sentences = []
    for key in dict.fromkeys([*before, *after]):
        old_leaves, new_leaves = before.get(key, []), after.get(key, [])
        installed = sum(leaf.installed for leaf in new_leaves) - sum(
            leaf.installed for leaf in old_leaves
        )
        unpacked = sum(leaf.unpacked for leaf in new_leaves) - sum(
            leaf.unpacked for leaf in old_leaves
        )
        kind, target = key
        if not old_leaves or not new_leaves:
            verb = "gone" if old_leaves else "added"
            entries = len(old_leaves or new_leaves)
            text = f"{kind}: target {target} {verb} ({entries} entries)"
            sentences.append(Reason(text, installed, unpacked))
            continue
        old_modes, new_modes = _modes(old_leaves), _modes(new_leaves)
        if old_modes != new_modes:
            text = f"{kind} of {target}: {old_modes} -> {new_modes} ({len(new_leaves)} entries)"
            sentences.append(Reason(text, installed, unpacked))
        elif len(old_leaves) != len(new_leaves):
            text = f"{kind} of {target}: entries {len(old_leaves)} -> {len(new_leaves)}"
            sentences.append(Reason(text, installed, unpacked))
    return sentences


def _modes(leaves: list[Leaf]) -> str:
    """The compression modes of entries, by bytes, largest first."""
    sizes: Counter[str] = Counter()
    for leaf in leaves:
        sizes[_CODEC_WORDS[leaf.codec]] += leaf.unpacked
    return " and ".join(mode for mode, _ in sizes.most_common())


def _templates(old: Sizes, new: Sizes) -> list[Reason]:
    """Reasons by template, for targets and kinds of both builds; a new target has its own line."""
    common_groups = set(_groups(old)) & set(_groups(new))
    before, after = (_template_rows(sizes, common_groups) for sizes in (old, new))
    least = max(_LEAST_BYTES, _LEAST_SHARE * sum(row.unpacked for row in after.values()))
    sentences = []
    for name in dict.fromkeys([*before, *after]):
        old_row, new_row = before.get(name, Row((name,))), after.get(name, Row((name,)))
        unpacked = new_row.unpacked - old_row.unpacked
        count, earlier = len(new_row.functions), len(old_row.functions)
        if abs(unpacked) < least or not (count or earlier):
            continue
        noun = "template" if name.endswith(">") else "function"
        if not earlier:
            text = f"{noun} {name} new" + (f", {count} instances" if count > 1 else "")
        elif not count:
            text = f"{noun} {name} gone" + (f", {earlier} instances" if earlier > 1 else "")
        elif count != earlier:
            text = f"{noun} {name}: instances {earlier} -> {count}"
        else:
            verb = "grown" if unpacked > 0 else "shrunk"
            share = 100 * abs(unpacked) / old_row.unpacked if old_row.unpacked else 0
            text = f"{noun} {name}: code {verb} by {share:.0f} %, same instances"
        sentences.append(Reason(text, new_row.installed - old_row.installed, unpacked))
    return sentences


def _template_rows(sizes: Sizes, groups: set[tuple[str, str]]) -> dict[str, Row]:
    rows_of: dict[str, Row] = {}
    for row in rows(sizes, ("kind", "target", "template")):
        kind, target, name = row.keys
        if (kind, target) in groups:
            total = rows_of.setdefault(name, Row((name,)))
            total.unpacked += row.unpacked
            total.installed += row.installed
            total.functions |= row.functions
    return rows_of


def signed(size: int, *, estimated: bool = False) -> str:
    """Format a difference of bytes with its sign."""
    text = bytes_text(abs(size))
    sign = "+" if size > 0 else "-" if size < 0 else ""
    return f"{'~' if estimated and size else ''}{sign}{text}"
