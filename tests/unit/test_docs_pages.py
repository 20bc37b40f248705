"""Every page: its links lead somewhere, what it names is there, and what it shows runs.

docs/diagnostics.md, docs/reading-diagnostics.md, docs/reports.md, docs/report-rules.md,
docs/start.md, docs/jitlink.md and docs/fleet.md have tests of their own, which run what they show;
docs/bench.md shows what takes minutes.
"""

from __future__ import annotations

import ast
import doctest
import os
import re
import shlex
import shutil
import subprocess
import sys
from inspect import signature
from itertools import filterfalse
from pathlib import Path
from textwrap import dedent

import pytest
from fuzz.__main__ import parser as fuzz_parser
from fuzz.races import parser as races_parser
from hazards.measure import parser as hazards_parser
from helpers import archive_builder, fatbin_builder
from helpers.sessions import BLOCK, needs_compiler, prints, sessions
from helpers.sessions import blocks as blocks_of
from helpers.sessions import commands as commands_of

import pylink
from benchmarks.limits import parser as limits_parser
from pylink import remarks
from pylink.api.keywords import LinkKeywords
from pylink.api.reference import REFERENCE
from pylink.bench.processes import Run
from pylink.bench.results import WARM, WHOLE, Results
from pylink.command.optionhelp import command_options
from pylink.facts import header
from pylink.options.commands import COMMANDS
from pylink.options.table import SPELLINGS
from pylink.remarks.container import LLVM_19

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "pylink"
NATIVE = ROOT / "src" / "_native"
CUBINS = ROOT / "demo" / "cubins"

TEXTS = {
    str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
    for path in sorted(
        [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/*.md")]
    )
}
RUN_ELSEWHERE = (
    "docs/diagnostics.md",
    "docs/reading-diagnostics.md",
    "docs/report-rules.md",
    "docs/reports.md",
    "docs/start.md",
    "docs/jitlink.md",
    "docs/fleet.md",
    "docs/bench.md",
)
# Shows sizes of public wheels.
WHEELS_PAGE = "docs/size.md"
SHOWN = {page: text for page, text in TEXTS.items() if page not in RUN_ELSEWHERE}

LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
PROMPT = re.compile(r"^(?:\$ | {4}(?:\$ )?)(pylink (?!error|fatal|warning).*)$", re.MULTILINE)
CALL = re.compile(r"`((?:pylink\.)?(?:Input|LinkOptions|Linker|link)\([^`]*\))`")
FILE = re.compile(r"(?<![\w-])(?:docs|src|tests|benchmarks|scripts|demo|examples)/[\w./-]*\w")
LONG = re.compile(r"(?<![\w-])--[A-Za-z][\w-]*")

# What `...` stands for.
EXAMPLE = "pylink -arch=sm_100 a.cubin b.cubin -o out.cubin"

# Options of other programs that pages tell how to use.
OTHERS = {
    *("--strict", "--bench-large", "--seeds", "--archs", "--variants"),  # of tests and benchmarks
    *("--import", "--print-summary", "--parser", "--count-by", "--args", "--group-by", "--build"),
    *("--compile-only", "--generate-line-info", "--dont-merge-basicblocks", "--return-at-end"),
    # Of scripts/real_programs.py and benchmarks/time_programs.py.
    *("--cache", "--checkouts", "--flavors", "--include", "--links", "--only", "--release"),
    *("--binary", "--step", "--table"),
    "--counts",  # of benchmarks/compare_commits.py
    *("--disable-optimizer-constants", "--compile-as-tools-patch"),  # of ptxas
    *("--no-as-needed", "--as-needed", "--gc-sections", "--version-script"),  # of host linkers
    *("--action_env", "--experimental_worker_allow_json_protocol"),  # of Bazel
    *("--dryrun", "--no-device-link"),  # of nvcc
    *("--no-deps",),  # of pip
    *("--output-fil",),  # an example of a misspelled option
    *("--query-gpu",),  # of nvidia-smi
    *("--indent", "--cuda", "--ignore"),  # of json.tool, of the overlay, and a family of options
}


def blocks(wanted: str) -> list[tuple[str, str]]:
    """The page and the text of each block in a language."""
    return [
        (page, block.text)
        for page, content in SHOWN.items()
        for block in blocks_of(content)
        if block.language == wanted
    ]


def commands() -> list[tuple[str, str]]:
    """What pages show as typed, without an output: indented, or in a block of the console."""
    typed = []
    for page, text in SHOWN.items():
        blocks = [] if runs_elsewhere(page) else filterfalse(shows_output, sessions(text))
        lines = [
            *PROMPT.findall(BLOCK.sub("", text)),
            *(command for session in blocks for command, _ in commands_of(session)),
        ]
        typed += [(page, line) for line in lines if line.startswith("pylink ")]
    return typed


def shows_output(session: str) -> bool:
    """Whether a page shows what any command of a session prints."""
    return any(shown for _, shown in commands_of(session))


def runs_elsewhere(page: str) -> bool:
    """test_docs_sessions.py runs sessions with a compiler, tests/wheels those on public wheels."""
    return needs_compiler(SHOWN[page]) or page == WHEELS_PAGE


# Shown on a page, and an example.
BAZEL = "BUILD.bazel"
# Languages of files that a reader creates or finds.
FILES = {"cmake", "cuda", "make", "ninja", "protobuf", "starlark", "toml"}


def test_blocks_of_files_name_the_file() -> None:
    found = [(page, block) for page, text in TEXTS.items() for block in blocks_of(text)]
    assert len([block for _, block in found if block.title]) > 8
    bare = [(page, block.text) for page, block in found if block.language in FILES]
    titles = [block.title for _, block in found if block.language in FILES]
    assert [shown for shown, title in zip(bare, titles, strict=True) if not title] == []


def test_files_of_examples_are_shown_as_they_are() -> None:
    (build,) = [block.text for block in blocks_of(TEXTS["docs/builds.md"]) if block.title == BAZEL]
    assert build == (ROOT / "examples" / "bazel" / BAZEL).read_text(encoding="utf-8")


def test_commands_in_blocks_have_prompts() -> None:
    """So that a reader can tell them from what they print."""
    blocks = [(page, block) for page, text in TEXTS.items() for block in BLOCK.findall(text)]
    assert [(page, block) for page, block in blocks if not block.startswith("$ ")] == []


def shell_sessions() -> list[tuple[str, str]]:
    """What pages show as typed, with outputs."""
    return [
        (page, session)
        for page, text in SHOWN.items()
        if not runs_elsewhere(page)
        for session in sessions(text)
        if shows_output(session)
    ]


def anchor(heading: str) -> str:
    """What a heading is called in links, as the usual hosts make it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def host_object(cubin: Path) -> bytes:
    code = fatbin_builder.entry(cubin.read_bytes(), 90, flags=0x100011)
    return fatbin_builder.host_object([("__nv_relfatbin", fatbin_builder.container(code))])


@pytest.fixture
def folder(tmp_path: Path, page: str, text: str) -> Path:
    """What the examples assume: inputs for the architecture they name, and results of links."""
    arch = "sm_90a" if "sm_90a" in text else "sm_100"
    cubins = CUBINS / arch
    shutil.copytree(cubins, tmp_path / "build")
    pair = [
        shutil.copy(cubins / f"smoothing_{letter}.cubin", tmp_path / f"{letter}.cubin")
        for letter in "ab"
    ]
    (tmp_path / "b.o").write_bytes(host_object(cubins / "random.cubin"))
    members = [("c.o", host_object(cubins / "reduction.cubin"))]
    (tmp_path / "libc.a").write_bytes(archive_builder.gnu(members))
    (tmp_path / "demo").symlink_to(ROOT / "demo")
    (tmp_path / "Makefile").write_text("program.cubin:\n")
    if page == "docs/builds.md":
        (tmp_path / "program.rsp").write_text("a.cubin b.cubin")
        pylink.link(pair, arch=arch, reproduce=tmp_path / "program.tar.zst")
    if page == "docs/inspect.md":
        pylink.link(pair, arch=arch, output=tmp_path / "pylink.cubin")
        shutil.copy(ROOT / "demo" / "linked" / f"{arch}.cubin", tmp_path / "nvlink.cubin")
    if page == "docs/growth.md":
        pylink.link(pair, arch=arch, profile_aprof=tmp_path / "link.aprof")
    if page == "docs/report-format.md":
        pylink.link(pair, arch=arch, profile=tmp_path / "link.ncu-rep")
    if page == "docs/remarks.md":
        pylink.link(pair, arch=arch, pass_remarks_output=tmp_path / "out.yaml")
        made = list(remarks.read_remarks(tmp_path / "out.yaml"))
        remarks.write_remarks(tmp_path / "out.bin", made, format="bitstream")
        remarks.write_remarks(tmp_path / "old.bin", made, format="bitstream", version=LLVM_19)
    return tmp_path


@pytest.mark.parametrize(("page", "text"), blocks("python"))
def test_programs_run(page: str, text: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    names = sorted(map(str, Path("build").glob("*.cubin")))
    given = {"pylink": pylink, "names": names, "data": Path("b.cubin").read_bytes()}
    exec(compile(text, page, "exec"), given)


def reference_examples() -> list[tuple[str, str]]:
    """The examples that docstrings have, as the reference shows them: indented."""
    page = "docs/python.md"
    signatures = re.compile(r"^```\n.*?^```$", re.MULTILINE | re.DOTALL)
    reference = signatures.sub("", TEXTS[page].partition(REFERENCE)[2])
    return [(page, dedent(text)) for text in re.findall(r"(?:^ {4}.*\n)+", reference, re.MULTILINE)]


@pytest.mark.parametrize(("page", "text"), reference_examples())
def test_examples_of_the_reference_run(
    page: str, text: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    results = Results()
    results.add_run("pylink", WARM, WHOLE, 2, 0, Run(1.0, 1.0, 1, ""))
    given = {"pylink": pylink, "data": Path("b.cubin").read_bytes(), "results": results}
    exec(compile(text, page, "exec"), given)


def test_there_are_examples_in_the_reference() -> None:
    assert [text.partition("(")[0] for _, text in reference_examples()] == [
        "pylink.growth",
        "with pylink.Linker",
        "options = pylink.LinkOptions",
    ]


@pytest.mark.parametrize(("page", "text"), blocks("pycon"))
def test_sessions_print_what_they_show(
    page: str, text: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    session = doctest.DocTestParser().get_doctest(text, {}, page, page, 0)
    assert session.examples
    doctest.DebugRunner(verbose=False).run(session)


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command of a page with this pylink; the standard streams are apart."""
    python = shlex.quote(sys.executable)
    return subprocess.run(
        ["bash", "-c", f'pylink() {{ {python} -m pylink "$@"; }}; {command}'],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": str(PACKAGE.parent),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",  # for other shells
        },
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(("page", "text"), commands())
def test_commands_run(page: str, text: str, folder: Path) -> None:
    toolkit = folder / "cuda"
    (toolkit / "bin").mkdir(parents=True)
    for name in ("nvcc", "nvcc.profile"):
        (toolkit / "bin" / name).touch()
    command = text.replace("/usr/local/cuda", str(toolkit)).replace("pylink ...", EXAMPLE)
    done = run(command, folder)
    assert done.returncode == 0 or (done.returncode == 1 and "--diff" in text)
    assert done.stderr == "" or "--pass-remarks=" in text


@pytest.mark.parametrize(("page", "text"), shell_sessions())
def test_commands_print_what_pages_show(page: str, text: str, folder: Path) -> None:
    for command, shown in commands_of(text):
        done = run(f"{{ {command}\n}} 2>&1", folder)
        assert prints(shown, done.stdout), f"{command}\n{done.stdout}"


def test_there_are_commands_of_both_kinds() -> None:
    assert len(commands()) > 10
    assert len(shell_sessions()) > 5


@pytest.mark.skipif(shutil.which("ninja") is None, reason="ninja is not installed")
@pytest.mark.parametrize(("page", "text"), blocks("ninja"))
def test_a_build_is_done_once(page: str, text: str, folder: Path) -> None:
    assert page == "docs/builds.md"
    command = f"command = {shlex.quote(sys.executable)} -m pylink"
    (folder / "build.ninja").write_text(text.replace("command = pylink", command))
    (folder / "libc.a").rename(folder / "libfilters.a")
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}

    def ninja() -> list[str]:
        done = subprocess.run(
            ["ninja"], cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout
        return done.stdout.splitlines()

    assert len(ninja()) == 1
    assert ninja() == ["ninja: no work to do."]
    made = (folder / "program.cubin").stat().st_mtime_ns
    (folder / "libfilters.a").touch()
    assert len(ninja()) == 1
    assert (folder / "program.cubin").stat().st_mtime_ns == made


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
@pytest.mark.parametrize(("page", "text"), blocks("make"))
def test_make_links_again_when_an_input_changed(page: str, text: str, folder: Path) -> None:
    assert page == "docs/builds.md"
    command = f"\t{shlex.quote(sys.executable)} -m pylink"
    (folder / "Makefile").write_text(text.replace("\tpylink", command))
    (folder / "libc.a").rename(folder / "libfilters.a")

    def make() -> str:
        done = run("make", folder)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "-o program.cubin" in make()
    assert "up to date" in make()
    (folder / "b.cubin").touch()
    assert "-o program.cubin" in make()


def test_calls_in_sentences_name_keywords_that_there_are() -> None:
    calls = [call for text in TEXTS.values() for call in CALL.findall(text)]
    assert len(calls) > 3
    for text in calls:
        call = ast.parse(text, mode="eval").body
        assert isinstance(call, ast.Call)
        name = text.partition("(")[0].removeprefix("pylink.")
        known = {*signature(getattr(pylink, name)).parameters}
        known |= {*LinkKeywords.__annotations__} if name != "Input" else set()
        assert {keyword.arg for keyword in call.keywords} <= known, text


@pytest.mark.parametrize("page", TEXTS)
def test_links_lead_somewhere(page: str) -> None:
    for target in LINK.findall(TEXTS[page]):
        if target.startswith("https:"):
            continue
        name, _, place = target.partition("#")
        file = ((ROOT / page).parent / name).resolve() if name else ROOT / page
        assert file.exists(), target
        assert not place or place in map(anchor, HEADING.findall(file.read_text())), target


@pytest.mark.parametrize("page", TEXTS)
def test_files_and_options_are_there(page: str) -> None:
    text = LINK.sub("]", TEXTS[page])
    assert [name for name in FILE.findall(text) if not (ROOT / name).exists()] == []
    known = {*SPELLINGS, *OTHERS}
    for parser in (fuzz_parser(), races_parser(), hazards_parser(), limits_parser()):
        known |= {word for action in parser._actions for word in action.option_strings}
    for name in COMMANDS:
        known |= {spelling for word in command_options(name) for spelling in word.spellings}
    assert set(LONG.findall(text)) <= known


def test_every_room_and_native_package_has_a_place_in_the_architecture() -> None:
    """Heads of modules say what they own; the page names rooms, packages and modules of phases."""
    named = set()
    for path in re.findall(r"`([\w*./]+)`", TEXTS["ARCHITECTURE.md"]):
        *folders, file = path.split("/")
        named |= {*folders, file}
    parts = {path.name for path in [*PACKAGE.glob("*.py"), *PACKAGE.glob("phases/*.py")]}
    parts |= {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert parts - named == {"__init__.py", "__main__.py"}
    packages = {path.parent.name for path in NATIVE.glob("*/*.p[yx][xd]")}
    assert len(packages) > 10
    packages |= {Path(name).stem for name in header.HEADERS}
    assert packages - named == set()


def test_every_folder_of_tests_has_a_place_in_the_architecture() -> None:
    folders = {path.parent.name for path in (ROOT / "tests").glob("*/*.py")}
    assert folders - set(re.findall(r"`tests/(\w+)/`", TEXTS["ARCHITECTURE.md"])) == set()


def test_the_architecture_is_short_and_names_what_there_is() -> None:
    text = TEXTS["ARCHITECTURE.md"]
    assert text.count("\n") < 150
    files = {path.name for path in [*ROOT.glob("src/**/*"), *ROOT.glob("tests/helpers/*")]}
    made = {"tables.pxd", "results.pxd", *header.HEADERS}
    named = set(re.findall(r"`(?:[\w/]+/)?(\w+\.(?:py|pyx|pxd|h|c|proto))`", text))
    assert len(named) > 30
    assert named - files - made == set()
    rooms = {path.name for path in [*ROOT.glob("src/**/*"), *ROOT.glob("*"), *ROOT.glob("tests/*")]}
    assert set(re.findall(r"`(?:\w+/)*(\w+)/`", text)) - rooms == set()
