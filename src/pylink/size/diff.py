"""What changed between two builds, by level, and why, in words.

Rows are matched by names that outlive a release: files without version, targets, kinds, templates
and functions. Differences add up to that of the whole, as rows do.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pylink.size.levels import EVERYTHING, Row, Selection, rows
from pylink.size.model import DEVICE, Leaf, Sizes
from pylink.size.numbers import bytes_text

if TYPE_CHECKING:
    from collections.abc import Sequence

_CODEC_WORDS = {"none": "stored", "lz4": "LZ4", "zstd": "zstd"}
# `1.2.3`, `.so.12.8` and the like between other parts of a name.
_VERSION = re.compile(
    r"(?<=[-_.])v?\d+(\.\d+)+([-_.+]?(post|dev|rc|a|b)\d+)*(?=[-_.]|$)|(?<=\.so)(\.\d+)+$"
)
# A change of a template's unpacked bytes that is worth a line: a part of the whole, and bytes.
_PART, _BYTES = 0.001, 1000
COLUMNS = ("unpacked", "installed", "download")


@dataclass
class Change:
    """A group of both builds; a side where it is missing has zeros."""

    keys: tuple[str, ...]
    old: Row
    new: Row

    def difference(self, column: str) -> int:
        value: int = getattr(self.new, column) - getattr(self.old, column)
        return value


@dataclass
class Reason:
    """Why bytes changed: words, and by how many installed and unpacked bytes."""

    text: str
    installed: int
    unpacked: int


def stem(name: str) -> str:
    """The name of a file without folders of its own and versions: what it is in any release."""
    folder, slash, last = name.rpartition("/")
    if ".dist-info" in folder:
        folder = _VERSION.sub("", folder)
    return f"{folder}{slash}{_VERSION.sub('', last)}"


def changes(
    old: Sizes, new: Sizes, by: Sequence[str], selection: Selection = EVERYTHING
) -> list[Change]:
    """Groups of both, those with the largest difference first."""
    before, after = (_by_key(sizes, by, selection) for sizes in (old, new))
    changed = [
        Change(key, before.get(key, Row(key)), after.get(key, Row(key)))
        for key in dict.fromkeys([*before, *after])
    ]
    column = column_of(old, new)
    changed.sort(key=lambda change: (-abs(change.difference(column)), change.keys))
    return changed


def column_of(old: Sizes, new: Sizes) -> str:
    """What counts first: the download if both have one."""
    return "download" if old.downloads and new.downloads else "installed"


def _by_key(sizes: Sizes, by: Sequence[str], selection: Selection) -> dict[tuple[str, ...], Row]:
    whole: dict[tuple[str, ...], Row] = {}
    only = _only_file(sizes)
    for row in rows(sizes, by, selection):
        key = tuple(
            _plain_name(name, only) if level in ("file", "archive") else name
            for level, name in zip(by, row.keys, strict=True)
        )
        total = whole.setdefault(key, Row(key))
        for column in ("count", *COLUMNS):
            setattr(total, column, getattr(total, column) + getattr(row, column))
        total.estimated = total.estimated or row.estimated
    return whole


def _only_file(sizes: Sizes) -> str:
    """The file or archive, where all that was measured is one: its folders do not matter."""
    outer = {file.archive or file.name for file in sizes.files}
    return outer.pop() if len(outer) == 1 else ""


def _plain_name(name: str, only: str) -> str:
    return stem(name.rpartition("/")[2] if name == only else name)


def reasons(old: Sizes, new: Sizes) -> list[Reason]:
    """Targets that came and went, other compression, templates that are new, gone or grown."""
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
        was, now = before.get(key, []), after.get(key, [])
        installed = sum(leaf.installed for leaf in now) - sum(leaf.installed for leaf in was)
        unpacked = sum(leaf.unpacked for leaf in now) - sum(leaf.unpacked for leaf in was)
        kind, target = key
        if not was or not now:
            verb = "gone" if was else "added"
            entries = len(was or now)
            text = f"{kind}: target {target} {verb} ({entries} entries)"
            sentences.append(Reason(text, installed, unpacked))
            continue
        old_modes, new_modes = _modes(was), _modes(now)
        if old_modes != new_modes:
            text = f"{kind} of {target}: {old_modes} -> {new_modes} ({len(now)} entries)"
            sentences.append(Reason(text, installed, unpacked))
        elif len(was) != len(now):
            text = f"{kind} of {target}: entries {len(was)} -> {len(now)}"
            sentences.append(Reason(text, installed, unpacked))
    return sentences


def _modes(leaves: list[Leaf]) -> str:
    """How entries are compressed, the most bytes first."""
    sizes: Counter[str] = Counter()
    for leaf in leaves:
        sizes[_CODEC_WORDS[leaf.codec]] += leaf.unpacked
    return " and ".join(mode for mode, _ in sizes.most_common())


def _templates(old: Sizes, new: Sizes) -> list[Reason]:
    """Only targets and kinds that both have; a new target has its own line."""
    both = set(_groups(old)) & set(_groups(new))
    before, after = (_template_rows(sizes, both) for sizes in (old, new))
    least = max(_BYTES, _PART * sum(row.unpacked for row in after.values()))
    sentences = []
    for name in dict.fromkeys([*before, *after]):
        was, now = before.get(name, Row((name,))), after.get(name, Row((name,)))
        unpacked = now.unpacked - was.unpacked
        count, earlier = len(now.functions), len(was.functions)
        if abs(unpacked) < least or not (count or earlier):
            continue
        what = "template" if name.endswith(">") else "function"
        if not earlier:
            text = f"{what} {name} new" + (f", {count} instances" if count > 1 else "")
        elif not count:
            text = f"{what} {name} gone" + (f", {earlier} instances" if earlier > 1 else "")
        elif count != earlier:
            text = f"{what} {name}: instances {earlier} -> {count}"
        else:
            verb = "grown" if unpacked > 0 else "shrunk"
            share = 100 * abs(unpacked) / was.unpacked if was.unpacked else 0
            text = f"{what} {name}: code {verb} by {share:.0f} %, same instances"
        sentences.append(Reason(text, now.installed - was.installed, unpacked))
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


def signed(size: int, estimated: bool = False) -> str:
    """A difference as people read it."""
    text = bytes_text(abs(size))
    sign = "+" if size > 0 else "-" if size < 0 else ""
    return f"{'~' if estimated and size else ''}{sign}{text}"
