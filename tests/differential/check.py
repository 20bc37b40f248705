"""Link prepared cases with pylink and compare each link with nvlink's answer.

    PYTHONPATH=tests python -m differential.check CORPUS [--archs 75,100] [--variants exec,r]

CORPUS holds ARCH/CASE folders made by `differential.run`. Each differing link is shown with its
first differences, then a table of equal links per arch and variant.
"""

# ruff: noqa: T201 - a command that reports to its user
from __future__ import annotations

import argparse
import faulthandler
import io
import os
import re
import subprocess
import sys
import traceback
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path

from differential import cases
from differential.cases import Case, Expected
from differential.variants import TEXT, VARIANTS
from helpers.compare import compare
from helpers.keywords import keywords
from helpers.words import nvlink_words, without_notes

HANG = 300  # seconds that the links of one case may take

# What distinguishes differences of one kind: numbers, and names with numbers in them.
NUMBERS = re.compile(r"\$?_+ZT?[NKZ]*\w+|0x[0-9a-f]+|(\b[0-9a-f]{2} ?)+\b|\d+")


class Tally:
    """How many links of each arch and variant were equal."""

    def __init__(self) -> None:
        self.equal: Counter[tuple[str, str]] = Counter()
        self.total: Counter[tuple[str, str]] = Counter()
        self.kinds: dict[str, list[str]] = {}

    @property
    def failed(self) -> int:
        return sum(self.total.values()) - sum(self.equal.values())

    def count(self, case: Case, variant: str, found: list[str]) -> None:
        self.total[case.arch, variant] += 1
        self.equal[case.arch, variant] += not found
        if found:
            kind = NUMBERS.sub("N", found[0])[:100]
            self.kinds.setdefault(kind, []).append(f"{case.name} {variant}")

    def print_kinds(self) -> None:
        """First differences that look alike, the commonest first, with the simplest example."""
        for kind, links in sorted(self.kinds.items(), key=lambda item: -len(item[1])):
            print(f"{len(links):5} {kind}\n      {links[0]}")

    def print(self) -> None:
        archs = list(dict.fromkeys(arch for arch, _ in self.total))
        print(f"\n{'':16}" + "".join(f"{arch:>9}" for arch in archs))
        for variant in dict.fromkeys(variant for _, variant in self.total):
            cells = [(self.equal[arch, variant], self.total[arch, variant]) for arch in archs]
            if any(total for _, total in cells):
                shown = (f"{equal}/{total}" if total else "-" for equal, total in cells)
                print(f"{variant:16}" + "".join(f"{cell:>9}" for cell in shown))
        print(f"sum {sum(self.equal.values())}/{sum(self.total.values())} equal")


def check_api(
    case: Case, expected: Expected, release: str | None = None, *, own: Sequence[str] = ()
) -> list[str]:
    """Differences of a link through `pylink.link`, run inside the case's folder: image and text.

    `release` is the one to follow, if neither the inputs nor the case are to say, `own` are options
    that only pylink gets.
    """
    import pylink  # noqa: PLC0415 - preparing cases works without the package

    link = expected.link
    reference = expected.image_bytes(case.folder)
    log = io.StringIO()
    chosen = keywords((*link.options, *own))
    if release or case.release:
        chosen["nvlink_version"] = release or case.release
    # With -g the name of the output is in the tool note: here of nvlink's length.
    output = Path(f"{expected.variant}.pylink.cubin")
    before = Path.cwd()
    os.chdir(case.folder)
    try:
        result = pylink.link(
            link.inputs,
            arch=f"sm_{link.arch}",
            output=output,
            log=log,
            **chosen,
        )
    except pylink.LinkError:
        image = None
    except Exception as error:  # a sweep goes on past a bug
        frame = traceback.extract_tb(error.__traceback__)[-1]
        return [f"{type(error).__name__}: {error} ({Path(frame.filename).name}:{frame.lineno})"]
    else:
        image = bytes(result.image)
    finally:
        os.chdir(before)
    said = nvlink_words(log.getvalue())
    found = _text("stderr", said, as_pylink(expected.stderr))
    if image is None and not expected.code:
        return [f"refused: {said.strip() or 'without a word'}"]
    if image is not None and expected.code:
        return ["linked, but nvlink refuses", *found]
    if image is not None and reference is None:
        return ["linked, and there is no image of nvlink to compare with", *found]
    if image is not None and reference is not None:
        found = compare(image, reference) + found
    return found


def as_pylink(text: str) -> str:
    """nvlink's messages with the tool's name replaced."""
    lines = text.splitlines(keepends=True)
    return "".join(
        "py" + line.removeprefix("nv") if line.startswith("nvlink ") else line for line in lines
    )


def check_cli(
    case: Case,
    expected: Expected,
    *,
    own: Sequence[str] = (),
    unknown: re.Pattern[str] | None = None,
) -> list[str]:
    """Differences of a link through the command line: exit code, both streams, image.

    `own` are options that only pylink gets; what matches `unknown` in stderr may be anything.
    """
    output = f"{expected.variant}.pylink.cubin"
    path = case.folder / output
    path.unlink(missing_ok=True)
    follow = [f"--nvlink-version={case.release}"] if case.release else []
    done = subprocess.run(
        [sys.executable, "-m", "pylink", *own, *follow, *expected.link.argv(output)],
        cwd=case.folder,
        capture_output=True,
        text=True,
        errors="surrogateescape",
        check=False,
        timeout=120,
    )
    found = []
    if done.returncode != expected.code:
        found.append(f"exit code {done.returncode}, expected {expected.code}: {done.stderr[-300:]}")
    # nvlink names its own output file in a few messages.
    theirs = expected.stderr.replace(".nvlink.cubin", ".pylink.cubin")
    said = without_notes(done.stderr)
    if unknown:
        said, theirs = unknown.sub("?", said), unknown.sub("?", theirs)
    found += _text("stderr", said, as_pylink(theirs))
    found += _text("stdout", done.stdout, as_pylink(expected.stdout))
    reference = expected.image_bytes(case.folder)
    if expected.code and path.is_file() != (reference is not None):
        found.append(f"output file {'not ' if reference is None else ''}expected")
    elif reference is not None and not path.is_file():
        found.append("no output file")
    elif reference is not None and expected.code == 0:
        found += compare(path.read_bytes(), reference)
    return found


# In front of what pylink adds to nvlink's messages under its own name.
NOTE = "pylink note    : "


def _text(stream: str, got: str, wanted: str) -> list[str]:
    ours = [line for line in got.splitlines() if not line.startswith(NOTE)]
    theirs = wanted.splitlines()
    if ours == theirs:
        return []
    pairs = enumerate(zip(ours, theirs, strict=False), 1)
    at = next((i for i, (a, b) in pairs if a != b), min(len(ours), len(theirs)) + 1)
    got_line = ours[at - 1] if at <= len(ours) else "nothing"
    wanted_line = theirs[at - 1] if at <= len(theirs) else "nothing"
    return [f"{stream} line {at}: got {got_line!r}; expected {wanted_line!r}"]


def check_case(
    case: Case,
    tally: Tally,
    variants: Collection[str],
    *,
    brief: bool = False,
    show: int = 5,
    cli: bool = False,
    release: str | None = None,
) -> bool:
    """Check the chosen links of a case, print what differs, and say whether all were equal."""
    fine = True
    for expected in case.links:
        if expected.variant not in variants:
            continue
        text = cli or expected.variant in TEXT
        found = check_cli(case, expected) if text else check_api(case, expected, release)
        tally.count(case, expected.variant, found)
        if not found:
            continue
        fine = False
        if not show:
            continue
        if brief:
            print(f"{case.name} {expected.variant}: {found[0][:200]}")
            continue
        print(f"{case.name} {expected.variant}: {len(found)} differences")
        for line in found[:show]:
            print(f"    {line}")
    return fine


def find(corpus: Path, archs: Collection[str], names: Collection[str]) -> list[Path]:
    """The case folders below `corpus`, simple ones first."""
    folders = (path.parent for path in corpus.glob("*/*/link.json"))
    chosen = (
        folder
        for folder in folders
        if (not archs or folder.parent.name in archs)
        and (not names or any(name in folder.name for name in names))
    )
    return sorted(chosen, key=lambda folder: (folder.name, folder.parent.name))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--archs", default="", help="list with commas; default all")
    parser.add_argument("--variants", default="exec", help="list with commas, or 'all'")
    parser.add_argument("--cases", default="", help="parts of case names, with commas")
    parser.add_argument("--brief", action="store_true", help="one line for each difference")
    parser.add_argument("--show", type=int, default=5, help="differences shown for one link")
    parser.add_argument("--stop", type=int, default=0, help="stop after so many failing cases")
    parser.add_argument("--summary", action="store_true", help="only kinds of first differences")
    parser.add_argument("--names", action="store_true", help="name each case before its links")
    parser.add_argument("--cli", action="store_true", help="use the command line for every link")
    arguments = parser.parse_args()
    variants = list(VARIANTS) if arguments.variants == "all" else arguments.variants.split(",")
    archs = [arch for arch in arguments.archs.split(",") if arch]
    names = [name for name in arguments.cases.split(",") if name]
    tally, failing = Tally(), 0
    faulthandler.enable()
    for folder in find(arguments.corpus, archs, names):
        faulthandler.dump_traceback_later(HANG, exit=True)  # a link that hangs ends the run
        if arguments.names:
            print(folder, flush=True)
        fine = check_case(
            cases.load(folder),
            tally,
            variants,
            brief=arguments.brief,
            show=0 if arguments.summary else arguments.show,
            cli=arguments.cli,
        )
        failing += not fine
        if failing and failing == arguments.stop:
            break
    faulthandler.cancel_dump_traceback_later()
    if arguments.summary:
        tally.print_kinds()
    tally.print()
    return 1 if tally.failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
