"""The rich renderer; expected texts marked "front end" are recorded output of CUDA 13.0's."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from pylink.diagnostics import Diagnostic, Policy, Sink, note
from pylink.diagnostics.color import is_wanted
from pylink.diagnostics.errors import LinkError
from pylink.diagnostics.paths import shortener
from pylink.diagnostics.record import CHILD, CONTINUATION, DETAIL, Source
from pylink.diagnostics.severity import (
    CATASTROPHE,
    CAUTION,
    COMMAND_LINE,
    DISCRETIONARY,
    ERROR,
    INTERNAL,
    NOTE,
    REMARK,
    WARNING,
)
from pylink.diagnostics.sourcefiles import SourceFiles
from pylink.renderers.presentation import Presentation
from pylink.renderers.text import TextRenderer


def record(
    severity: int,
    text: str,
    *,
    number: int = 0,
    source: Source | None = None,
    type: int = 0,
    children: list[Diagnostic] | None = None,
    notes: list[Diagnostic] | None = None,
    context: list[Diagnostic] | None = None,
    extra: list[Diagnostic] | None = None,
) -> Diagnostic:
    """A record of any text, as the front end's messages are not in our table."""
    made = Diagnostic(
        "malformed",
        source=source,
        type=type,
        children=children or (),
        notes=notes or (),
        context=context or (),
        extra=extra or (),
    )
    made.template = text.replace("{", "{{").replace("}", "}}")
    made.level = made.original = severity
    made.number = number
    return made


def show(
    diagnostic: Diagnostic, sources: SourceFiles | None = None, **shown: bool | int | str
) -> str:
    stream = io.StringIO()
    presentation = Presentation(**shown)  # type: ignore[arg-type] # as they are there
    TextRenderer(stream, presentation, sources=sources).emit(diagnostic)
    return stream.getvalue()


@pytest.fixture
def in_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "w2.cu").write_text("void g() { int unused; int unused2; }\n")
    (tmp_path / "w.cu").write_text(
        "void f(int);\ntemplate<class T> void tt(T, T);\n\n"
        'void h() { nosuch(3); tt(1, 2.0); f("x", 2); }\n'
    )
    return tmp_path


def unused(source: Source | None = None) -> Diagnostic:
    text = 'variable "unused" was declared but never referenced'
    return record(WARNING, text, number=177, source=source)


@pytest.mark.usefixtures("in_source")
def test_warning_with_number_and_caret() -> None:
    # front end
    assert show(unused(Source("w2.cu", 1, 16)), numbers=True) == (
        'w2.cu(1): warning #177-D: variable "unused" was declared but never referenced\n'
        "  void g() { int unused; int unused2; }\n"
        "                 ^\n"
        "\n"
    )


@pytest.mark.usefixtures("in_source")
def test_details_come_before_the_source_and_notes_after_it() -> None:
    # front end
    failed = record(
        NOTE,
        'candidate function template "tt" failed deduction',
        number=3327,
        source=Source("w.cu", 2, 24),
    )
    types = record(ERROR, "argument types are: (int, double)", type=DETAIL)
    text = 'no instance of function template "tt" matches the argument list'
    top = record(
        ERROR, text, number=304, source=Source("w.cu", 4, 23), children=[types], notes=[failed]
    )
    message = 'w.cu(4): error: no instance of function template "tt" matches the argument list\n'
    detail = "            argument types are: (int, double)\n"
    below = 'w.cu(2): note #3327-D: candidate function template "tt" failed deduction\n'
    assert show(top, numbers=True) == (
        f"{message}{detail}"
        '  void h() { nosuch(3); tt(1, 2.0); f("x", 2); }\n'
        "                        ^\n"
        f"{below}"
        "  template<class T> void tt(T, T);\n"
        "                         ^\n"
        "\n"
    )
    assert show(top, numbers=True, brief=True) == f"{message}{detail}{below}"


def test_without_a_file_the_label_is_capitalised() -> None:
    # front end
    hint = Diagnostic("suppression-hint")
    assert show(hint, numbers=True, width=0) == (
        'Remark: The warnings can be suppressed with "-diag-suppress <warning-number>"\n\n'
    )
    wrong = Diagnostic("unknown-diagnostic", {"value": "99999"})
    assert show(wrong) == (
        "Command-line error: invalid error number in diagnostic control option: 99999\n\n"
    )


@pytest.mark.parametrize(
    ("severity", "label"),
    [
        (NOTE, "note"),
        (REMARK, "remark"),
        (WARNING, "warning"),
        (CAUTION, "warning"),
        (DISCRETIONARY, "error"),
        (ERROR, "error"),
        (CATASTROPHE, "catastrophic error"),
        (INTERNAL, "internal error"),
    ],
)
def test_labels(severity: int, label: str) -> None:
    assert show(record(severity, "m", source=Source("none.cu", 3))) == f"none.cu(3): {label}: m\n\n"


def test_a_command_line_error_has_no_location() -> None:
    at = record(COMMAND_LINE, "m", source=Source("none.cu", 3))
    assert show(at) == "Command-line error: m\n\n"


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ({"file": "a.cubin"}, "a.cubin: error: r\n\n"),
        ({"file": "a.cubin", "section": ".text.k"}, "a.cubin(.text.k): error: r\n\n"),
        (
            {"file": "a.cubin", "section": ".symtab", "index": 4},
            "a.cubin(.symtab[4]): error: r\n\n",
        ),
        (
            {"file": "a.cubin", "section": ".text.k", "offset": 80},
            "a.cubin(.text.k+0x50): error: r\n\n",
        ),
        ({}, "Error: r\n\n"),
    ],
)
def test_a_place_in_a_cubin_comes_in_front_once(place: dict[str, str], text: str) -> None:
    assert show(Diagnostic("malformed", {"reason": "r", **place})) == text


@pytest.mark.parametrize(
    ("original", "assigned", "severity", "number"),
    [
        (WARNING, 0, WARNING, " #177-D"),
        (REMARK, 0, REMARK, " #177-D"),
        (NOTE, 0, NOTE, " #177-D"),
        (WARNING, 0, DISCRETIONARY, " #177-D"),  # promoted: keeps it
        (WARNING, DISCRETIONARY, DISCRETIONARY, ""),  # assigned: loses it
        (WARNING, REMARK, REMARK, " #177-D"),
        (CAUTION, 0, CAUTION, ""),
        (ERROR, 0, ERROR, ""),
    ],
)
def test_which_records_show_their_number(
    original: int, assigned: int, severity: int, number: str
) -> None:
    shown = record(original, "m", number=177, source=Source("none.cu", 1))
    shown.assigned, shown.level = assigned, severity
    plain = show(shown)
    assert "#" not in plain
    assert show(shown, numbers=True) == plain.replace(": m", f"{number}: m")


def test_a_record_without_number_shows_none() -> None:
    assert show(record(WARNING, "m"), numbers=True) == "Warning: m\n\n"


@pytest.mark.usefixtures("in_source")
def test_colors() -> None:
    # front end, but for the quotes of our own messages: the name is bold, its quotes are not
    assert show(unused(Source("w2.cu", 1, 16)), numbers=True, color="always").startswith(
        "\x1b[01m\x1b[0m\x1b[01mw2.cu(1)\x1b[0m: \x1b[01;35mwarning\x1b[0m #177-D: variable"
    )
    hint = Diagnostic("suppression-hint")
    assert show(hint, color="always", numbers=True) == (
        "\x1b[01;36m\x1b[0m\x1b[01;36mRemark\x1b[0m: "
        'The warnings can be suppressed with "-diag-suppress <warning-number>"\n\n'
    )
    undefined = Diagnostic("undefined-reference", {"symbol": "f", "file": "a.cubin"})
    assert show(undefined, color="always") == (
        "\x1b[01m\x1b[0m\x1b[01ma.cubin\x1b[0m: \x1b[01;31merror\x1b[0m: "
        "Undefined reference to '\x1b[01mf\x1b[0m' in '\x1b[01ma.cubin\x1b[0m'\n\n"
    )


def test_colors_taken_out_leave_the_plain_text() -> None:
    name = "_ZN" + "4long" * 40 + "Ev"
    undefined = Diagnostic("undefined-reference", {"symbol": name, "file": "a.cubin"})
    colored = show(undefined, color="always", width=60)
    for code in ("\x1b[0m", "\x1b[01m", "\x1b[01;31m"):
        colored = colored.replace(code, "")
    assert colored == show(undefined, width=60)
    assert max(map(len, colored.splitlines())) == 59


@pytest.mark.parametrize(
    ("when", "environment", "terminal", "wanted"),
    [
        ("auto", {}, True, True),
        ("auto", {}, False, False),
        ("auto", {"NO_COLOR": "1"}, True, False),
        ("auto", {"NO_COLOR": ""}, True, True),
        ("auto", {"TERM": "dumb"}, True, False),
        ("always", {"NO_COLOR": "1"}, False, True),
        ("never", {}, True, False),
    ],
)
def test_when_colors_are_on(
    when: str,
    environment: dict[str, str],
    terminal: bool,
    wanted: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in {"NO_COLOR": "", "TERM": "xterm", **environment}.items():
        monkeypatch.setenv(name, value)
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: terminal)
    assert is_wanted(when, stream) is wanted


def test_margins_by_type_and_order_of_the_tree() -> None:
    long = "x" * 60 + " " + "y" * 30
    top = record(
        ERROR,
        "top",
        children=[
            record(ERROR, "first " + long, type=CHILD),
            record(ERROR, "second " + long, type=CHILD),
            record(ERROR, "detail " + long, type=DETAIL),
        ],
        notes=[record(NOTE, "note")],
        context=[record(ERROR, "context", type=CHILD)],
        extra=[record(ERROR, "extra " + long + long, type=CONTINUATION)],
    )
    assert show(top) == (
        "Error: top\n"
        f"            detail {'x' * 60}\n                      {'y' * 30}\n"
        f"          first {'x' * 60}\n                    {'y' * 30}\n"
        f"            second {'x' * 60}\n                      {'y' * 30}\n"
        "Note: note\n"
        "          context\n"
        f" extra {'x' * 60}\n           {'y' * 30}{'x' * 38}\n           {'x' * 22} {'y' * 30}\n"
        "\n"
    )
    assert top.context[0].parent is top


def test_a_note_does_not_show_notes_of_its_own() -> None:
    assert show(record(NOTE, "m", notes=[record(NOTE, "below")])) == "Note: m\n\n"
    assert "below" in show(record(REMARK, "m", notes=[record(NOTE, "below")]))


@pytest.mark.parametrize(
    ("kind", "section", "about"),
    [
        ("symbol-range", ".nv.global", "            about 'e'\n"),
        ("symbol-range", ".text.e", ""),
        ("symbol-range", ".text.be.e$1.e", ""),
        ("symbol-range", ".text.be.e$1", "            about 'e'\n"),
        ("undefined-reference", ".nv.global", ""),
    ],
)
def test_a_symbol_that_the_message_leaves_out_is_named(kind: str, section: str, about: str) -> None:
    diagnostic = Diagnostic(kind, {"file": "a.cubin", "section": section, "symbol": "e"})
    first, _, rest = show(diagnostic).partition("\n")
    assert first.startswith(f"a.cubin({section}): error: ")
    assert rest == f"{about}\n"


def test_control_characters_do_not_reach_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "s.cu").write_bytes(b"a\x1b[2Jb\n")
    undefined = Diagnostic(
        "undefined-reference",
        {"symbol": "f\n\x1b\x02", "file": "a.cubin"},
        source=Source(str(tmp_path / "s.cu"), 1, 3),
    )
    for color in ("never", "always"):
        files = SourceFiles([str(tmp_path)])
        shown = show(undefined, color=color, width=0, sources=files)
        assert "f\\n\\x1b\\x02" in shown
        assert "\n  a?[2Jb\n    ^\n" in shown


def finish(*kinds: str, limit: int = 0, **shown: str) -> str:
    stream = io.StringIO()
    sink = Sink(
        TextRenderer(stream, Presentation(**shown)),  # type: ignore[arg-type] # texts only
        policy=Policy(error_limit=limit),
    )
    try:
        for kind in kinds:
            sink.report(kind, symbol="f", file="a.cubin")
    except LinkError:
        pass
    sink.close()
    return stream.getvalue().rpartition("\n\n")[2]


def test_the_summary() -> None:
    assert finish("stack-size") == ""
    assert finish("undefined-reference", subject="o.cubin") == (
        '1 error detected in the link of "o.cubin".\n'
    )
    assert finish("undefined-reference", "undefined-reference") == (
        "2 errors detected in this link.\n"
    )
    assert finish("undefined-reference", "merge-failed") == (
        "1 error and 1 catastrophic error detected in this link.\nLink terminated.\n"
    )
    # front end
    assert finish("no-input-files", task="compilation") == (
        "1 catastrophic error detected in this compilation.\nCompilation terminated.\n"
    )
    assert finish("undefined-reference", limit=1, task="compilation", subject="w.cu") == (
        "Error limit reached.\n"
        '1 error detected in the compilation of "w.cu".\n'
        "Compilation terminated.\n"
    )


@pytest.mark.usefixtures("in_source")
def test_a_link_error_is_one_readable_block() -> None:
    stream = io.StringIO()
    sink = Sink(TextRenderer(stream, Presentation(numbers=True, subject="o.cubin")))
    sink.report(
        "undefined-reference",
        symbol="f",
        file="a.cubin",
        section=".text.h",
        offset=0x50,
        source=Source("w.cu", 4, 12, 17),
        notes=[note("referenced-here", symbol="f", file="b.cubin", section=".text.g", offset=16)],
    )
    sink.close()
    assert stream.getvalue() == (
        "w.cu(4): error: Undefined reference to 'f' in 'a.cubin'\n"
        "            at a.cubin: .text.h+0x50\n"
        '  void h() { nosuch(3); tt(1, 2.0); f("x", 2); }\n'
        "             ^~~~~~\n"
        "b.cubin(.text.g+0x10): note #412-D: 'f' is referenced here\n"
        "\n"
        '1 error detected in the link of "o.cubin".\n'
    )


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        (["/usr/a/x", "/usr/a/b/y"], ["x", "b/y"]),
        (["/usr/x", "/home/y"], ["/usr/x", "/home/y"]),
        (["a/x", "/a/y"], ["a/x", "/a/y"]),
    ],
)
def test_paths_lose_the_directory_that_they_share(names: list[str], shown: list[str]) -> None:
    assert [*map(shortener(names), names)] == shown
