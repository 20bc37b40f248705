"""Differences of two builds by level, and sentences on the reasons.

Rows are matched by names that stay the same between releases: files without version, targets,
kinds, templates and functions. The differences of all rows add up to that of the builds.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from pylink.size.levels import EVERYTHING, Row, Selection, rows
from pylink.size.model import DEVICE_KINDS, Leaf, Sizes
from pylink.terminal.numbers import bytes_text, share_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_CODEC_WORDS = {"none": "stored", "lz4": "LZ4", "zstd": "zstd"}
# A version in the name of a file: `1.2.3` between other parts, or `.12.8` after `.so`.
_VERSION = re.compile(
    r"(?<=[-_.])v?\d+(\.\d+)+([-_.+]?(post|dev|rc|a|b)\d+)*(?=[-_.]|$)|(?<=\.so)(\.\d+)+$"
)
# A change of a template has a line if it is at least _LEAST_BYTES and, as a share of the unpacked
# device code in the new build, at least _LEAST_SHARE.
_LEAST_SHARE, _LEAST_BYTES = 0.001, 1000
# Columns of rows that hold bytes.
COLUMNS = ("unpacked", "installed", "download")


@dataclass
class Change:
    """The bytes of one group in the old and in the new build; a build without it has zeros.

    `keys` has the group's name at each level of the table, such as its kind and target.
    """

    keys: tuple[str, ...]
    old: Row
    new: Row

    def difference(self, column: str) -> int:
        """Return the bytes of a column in the new build less those in the old build."""
        value: int = getattr(self.new, column) - getattr(self.old, column)
        return value


@dataclass
class Reason:
    """A reason for a difference, as text; `installed` and `unpacked` are new less old bytes."""

    text: str
    installed: int
    unpacked: int


def stem(name: str) -> str:
    """Return the name of a file without versions, which is the same in all releases."""
    directory, slash, last = name.rpartition("/")
    if ".dist-info" in directory:
        directory = _VERSION.sub("", directory)
    return f"{directory}{slash}{_VERSION.sub('', last)}"


def changes(
    old: Sizes, new: Sizes, by: Sequence[str], selection: Selection = EVERYTHING
) -> list[Change]:
    """Return the groups of both builds by the levels `by`, such as "kind", largest change first."""
    before, after = (_rows_by_key(sizes, by, selection) for sizes in (old, new))
    changed = [
        Change(key, before.get(key, Row(key)), after.get(key, Row(key)))
        for key in dict.fromkeys([*before, *after])
    ]
    column = column_of(old, new)
    changed.sort(key=lambda change: (-abs(change.difference(column)), change.keys))
    return changed


def column_of(old: Sizes, new: Sizes) -> str:
    """Return the column that orders rows: `download` if both builds have it, else `installed`."""
    return "download" if old.downloads and new.downloads else "installed"


def _rows_by_key(
    sizes: Sizes, by: Sequence[str], selection: Selection
) -> dict[tuple[str, ...], Row]:
    """Return the rows of one build by their keys, in which names of files have no versions.

    Rows whose keys become equal are added up.
    """
    sum_rows: dict[tuple[str, ...], Row] = {}
    only_file = _only_file(sizes)
    for row in rows(sizes, by, selection):
        key = tuple(
            _plain_name(name, only_file) if level in ("file", "archive") else name
            for level, name in zip(by, row.keys, strict=True)
        )
        sum_row = sum_rows.setdefault(key, Row(key))
        for column in ("count", *COLUMNS):
            setattr(sum_row, column, getattr(sum_row, column) + getattr(row, column))
        sum_row.estimated = sum_row.estimated or row.estimated
    return sum_rows


def _only_file(sizes: Sizes) -> str:
    """Return the name of the only measured file or archive, else "".

    Such a file is matched by its base name alone: two builds lie in different directories.
    """
    outer_names = {file.archive or file.name for file in sizes.files}
    return outer_names.pop() if len(outer_names) == 1 else ""


def _plain_name(name: str, only_file: str) -> str:
    """Return the name by which a file is matched; `only_file` is the only one measured, else ""."""
    return stem(name.rpartition("/")[2] if name == only_file else name)


def reasons(old: Sizes, new: Sizes) -> list[Reason]:
    """Return the reasons for the difference, largest first.

    They are targets added or gone, another compression or number of entries, and templates or
    functions new, gone, grown, shrunk or with another number of instances.
    """
    found_reasons = [*_target_reasons(old, new), *_template_reasons(old, new)]
    found_reasons.sort(key=lambda reason: (-abs(reason.installed), reason.text))
    return found_reasons


def _device_leaves(sizes: Sizes) -> dict[tuple[str, str], list[Leaf]]:
    """Return the leaves of device code, each a range of bytes with one use, by kind and target."""
    groups: dict[tuple[str, str], list[Leaf]] = {}
    for leaf in sizes.leaves:
        if leaf.kind in DEVICE_KINDS:
            groups.setdefault((leaf.kind, leaf.target), []).append(leaf)
    return groups


def _target_reasons(old: Sizes, new: Sizes) -> list[Reason]:
    """Return reasons by kind and target: added, gone, other compression, other count."""
    before, after = _device_leaves(old), _device_leaves(new)
    target_reasons = []
    for kind_and_target in dict.fromkeys([*before, *after]):
        old_leaves, new_leaves = before.get(kind_and_target, []), after.get(kind_and_target, [])
        installed = sum(leaf.installed for leaf in new_leaves) - sum(
            leaf.installed for leaf in old_leaves
        )
        unpacked = sum(leaf.unpacked for leaf in new_leaves) - sum(
            leaf.unpacked for leaf in old_leaves
        )
        kind, target = kind_and_target
        if not old_leaves or not new_leaves:
            verb = "gone" if old_leaves else "added"
            entries = len(old_leaves or new_leaves)
            text = f"{kind}: target {target} {verb} ({entries} entries)"
            target_reasons.append(Reason(text, installed, unpacked))
            continue
        old_modes, new_modes = _compression_modes(old_leaves), _compression_modes(new_leaves)
        if old_modes != new_modes:
            text = f"{kind} of {target}: {old_modes} -> {new_modes} ({len(new_leaves)} entries)"
            target_reasons.append(Reason(text, installed, unpacked))
        elif len(old_leaves) != len(new_leaves):
            text = f"{kind} of {target}: entries {len(old_leaves)} -> {len(new_leaves)}"
            target_reasons.append(Reason(text, installed, unpacked))
    return target_reasons


def _compression_modes(leaves: list[Leaf]) -> str:
    """Return the compression modes of entries, joined by "and", with most unpacked bytes first."""
    sizes: Counter[str] = Counter()
    for leaf in leaves:
        sizes[_CODEC_WORDS[leaf.codec]] += leaf.unpacked
    return " and ".join(mode for mode, _ in sizes.most_common())


def _template_reasons(old: Sizes, new: Sizes) -> list[Reason]:
    """Return reasons by template or function, for changes of many unpacked bytes.

    Only targets and kinds of both builds count: a new target has a line of its own.
    """
    common_groups = set(_device_leaves(old)) & set(_device_leaves(new))
    before, after = (_template_rows(sizes, common_groups) for sizes in (old, new))
    least_change = max(_LEAST_BYTES, _LEAST_SHARE * sum(row.unpacked for row in after.values()))
    template_reasons = []
    for name in dict.fromkeys([*before, *after]):
        old_row, new_row = before.get(name, Row((name,))), after.get(name, Row((name,)))
        unpacked = new_row.unpacked - old_row.unpacked
        new_count, old_count = len(new_row.functions), len(old_row.functions)
        if abs(unpacked) < least_change or not (new_count or old_count):
            continue
        noun = "template" if name.endswith(">") else "function"
        if not old_count:
            text = f"{noun} {name} new" + (f", {new_count} instances" if new_count > 1 else "")
        elif not new_count:
            text = f"{noun} {name} gone" + (f", {old_count} instances" if old_count > 1 else "")
        elif new_count != old_count:
            text = f"{noun} {name}: instances {old_count} -> {new_count}"
        else:
            verb = "grown" if unpacked > 0 else "shrunk"
            share = share_text(abs(unpacked), old_row.unpacked)
            text = f"{noun} {name}: code {verb} by {share}, same instances"
        template_reasons.append(Reason(text, new_row.installed - old_row.installed, unpacked))
    return template_reasons


def _template_rows(sizes: Sizes, groups: set[tuple[str, str]]) -> dict[str, Row]:
    """Return the rows of templates by name, summed over these kinds and targets."""
    by_name: dict[str, Row] = {}
    for row in rows(sizes, ("kind", "target", "template")):
        kind, target, name = row.keys
        if (kind, target) in groups:
            total = by_name.setdefault(name, Row((name,)))
            total.unpacked += row.unpacked
            total.installed += row.installed
            total.functions |= row.functions
    return by_name


def signed_text(size: int, *, estimated: bool = False) -> str:
    """Return a difference in bytes as text with its sign, and with ~ if it is estimated."""
    text = bytes_text(abs(size))
    sign = "+" if size > 0 else "-" if size < 0 else ""
    return f"{'~' if estimated and size else ''}{sign}{text}"
