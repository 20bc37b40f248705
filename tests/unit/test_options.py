"""From argv to option values and to the text the tool note records."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.compare import compare
from helpers.cubin_builder import one_kernel

import pylink
from pylink import LinkError
from pylink.diagnostics import Sink
from pylink.options import parse as optionparse
from pylink.options.check import check
from pylink.options.help import HELP, help_text
from pylink.options.model import Options, note_text
from pylink.options.parse import CommandLine, parse
from pylink.options.table import (
    FLAG,
    LIST,
    NUMBER,
    OPTIONS,
    SIZE,
    TEXT,
    TRUTH,
    Option,
    Value,
)


def parsed(*words: str) -> CommandLine:
    return parse(words, Sink())


def mistake(*words: str) -> str:
    with pytest.raises(LinkError) as caught:
        parse(words, Sink())
    return caught.value.errors[0].message


@pytest.mark.parametrize(
    "words", [["-arch=sm_90a"], ["-arch", "sm_90a"], ["--arch=sm_90a"], ["--arch", "sm_90a"]]
)
def test_four_spellings(words: list[str]) -> None:
    assert parsed(*words).values == {"arch": "sm_90a"}


@pytest.mark.parametrize("words", [["-lfoo"], ["-l", "foo"], ["-l=foo"], ["--library", "foo"]])
def test_joined_argument(words: list[str]) -> None:
    assert parsed(*words).values == {"library": ("foo",)}


def test_an_exact_short_name_wins_over_a_joined_argument() -> None:
    assert parsed("-lto", "-ltofoo").values == {"link_time_opt": True, "library": ("tofoo",)}


@pytest.mark.parametrize("dashes", ["-", "--"])
def test_diagnostics_are_controlled_with_one_dash_as_in_nvcc_or_two(dashes: str) -> None:
    line = parsed(f"{dashes}diag-suppress", "501", f"{dashes}diag-error=203,204")
    assert line.values == {"diag_suppress": ("501",), "diag_error": ("203", "204")}


def test_lists_add_up_and_inputs_keep_their_order() -> None:
    line = parsed("b", "-kernels-used", "k,q", "a", "--kernels-used=k", "-")
    assert line.values == {"kernels_used": ("k", "q", "k")}
    assert line.inputs == ["b", "a", "-"]


def test_an_argument_may_look_like_an_option_or_hold_an_equals_sign() -> None:
    assert parsed("-o", "--help", "-o=--help").values == {"output_file": "--help"}
    assert parsed("-o=a=b").values == {"output_file": "a=b"}


@pytest.mark.parametrize(
    ("words", "kind", "inputs"),
    [
        (["-ghls"], "lcs-abs", []),
        (["-ghls", "lcs-aug"], "lcs-aug", []),
        (["-ghls", "-v", "a"], "lcs-abs", ["a"]),
        (["-ghls=lcs-aug", "lcs-abs"], "lcs-aug", ["lcs-abs"]),
    ],
)
def test_optional_argument(words: list[str], kind: str, inputs: list[str]) -> None:
    line = parsed(*words)
    assert line.values["gen_host_linker_script"] == kind
    assert line.inputs == inputs


@pytest.mark.parametrize("number", ["64", "0x40", "0X40", "0100", " 64", "+64"])
def test_numbers_are_those_of_c(number: str) -> None:
    assert parsed(f"-m{number}").values == {"machine": 64}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-bogus"], "Unknown option 'bogus'"),
        (["--bogus=3"], "Unknown option '-bogus'"),
        (["--"], "Unknown option '-'"),
        (["-="], "Unknown option ''"),
        (["-verbose"], "Unknown option 'verbose'"),
        (["-oo"], "Unknown option 'oo'"),
        (["-arch"], "argument expected after '-arch'"),
        (["--output-file"], "argument expected after '--output-file'"),
        (["-v=true"], "no argument expected after '-v'"),
        (["--help="], "no argument expected after '--help'"),
        (["-arch=sm_99"], "Value 'sm_99' is not defined for option 'arch'"),
        (["-m", "064"], "Value '064' is not defined for option 'machine'"),
        (["-m", ""], "Value '' is not defined for option 'machine'"),
        (["-machine"], "'achine': expected a number"),
        (["-m", "64 "], "'64 ': expected a number"),
        (["-m", "6_4"], "'6_4': expected a number"),
        (["-m", "0x"], "'0x': expected a number"),
        (["-m", "0x0x40"], "'0x0x40': expected a number"),
        (["-m", "0o100"], "'0o100': expected a number"),
        (["-m", "99999999999"], "32-bit integer value (99999999999) out of range"),
        (["-m", "2147483648"], "32-bit integer value (2147483648) out of range"),
        (["-m", "-2147483649"], "32-bit integer value (-2147483649) out of range"),
        (["-m", "-2147483648"], "Value '-2147483648' is not defined for option 'machine'"),
        (["-device-stack-protector", "1"], "'1': expected true or false"),
        (["-optf", "missing"], "Could not open options file 'missing'"),
    ],
)
def test_mistakes(words: list[str], message: str) -> None:
    assert mistake(*words) == message


def test_sizes_may_be_larger_than_numbers() -> None:
    given = parsed("--max-uncompressed-size", "0x200000000")
    assert given.values == {"max_uncompressed_size": 1 << 33}


def test_the_first_mistake_is_the_one_reported() -> None:
    assert mistake("-m", "32", "-bogus") == "Value '32' is not defined for option 'machine'"
    assert mistake("-bogus", "-m", "32") == "Unknown option 'bogus'"


def test_redefinition_warns_and_the_last_value_counts() -> None:
    sink = Sink()
    line = parse(["-o", "a", "-o", "a", "-o", "b", "-v", "-v"], sink)
    assert line.values == {"output_file": "b", "verbose": True}
    assert [record.message for record in sink.diagnostics] == [
        "incompatible redefinition for option 'output-file', the last value of this option was used"
    ]


def test_options_files_stand_for_their_words(tmp_path: Path) -> None:
    inner, outer = tmp_path / "inner", tmp_path / "outer"
    inner.write_text('b "c d"')
    outer.write_text(f"a -optf {inner} -v")
    line = parsed("first", f"-optf={outer},{tmp_path}", "last")
    assert line.inputs == ["first", "a", "b", "c d", "last"]
    assert line.values["verbose"] is True


def test_an_option_cannot_take_its_argument_from_outside_its_file(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("-arch")
    assert mistake("-optf", str(tmp_path / "f"), "sm_75") == "argument expected after '-arch'"


def test_options_files_may_not_include_each_other_for_ever(tmp_path: Path) -> None:
    (tmp_path / "f").write_text(f"-optf {tmp_path / 'f'}")
    assert mistake("-optf", str(tmp_path / "f")).startswith("Too many options file opened")
    for depth in range(201):
        (tmp_path / f"{depth}").write_text(f"-optf {tmp_path / str(depth + 1)}")
    (tmp_path / "201").write_text("a")
    assert parsed("-optf", str(tmp_path / "2")).inputs == ["a"]
    assert mistake("-optf", str(tmp_path / "1")).endswith("201'")
    # Two of each in the next would be 2^200.
    for depth in range(200):
        (tmp_path / f"{depth}").write_text(f"@{tmp_path / str(depth + 1)} " * 2)
    assert mistake("-optf", str(tmp_path / "10")).startswith("Too many options file opened")


def test_response_files_stand_for_their_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("words").write_text('a "b c" @sub/more -v')
    Path("sub").mkdir()
    Path("sub/more").write_text("@deeper")
    Path("deeper").write_text("d")  # names begin where the link runs
    line = parsed("first", "@words", "last")
    assert line.inputs == ["first", "a", "b c", "d", "last"]
    assert line.values["verbose"] is True
    # What is not a response file is an input, and so is a file of the whole name, as with nvlink.
    assert parsed("@none", "@").inputs == ["@none", "@"]
    Path("@words").touch()
    assert parsed("@words").inputs == ["@words"]
    Path("loop").write_text("@loop")
    assert mistake("@loop") == "Too many options file opened 'loop'"


def test_response_files_of_any_length(tmp_path: Path) -> None:
    names = [f"directory/object_{number}.o" for number in range(200_000)]
    (tmp_path / "words").write_text("\r\n".join(names))
    assert parsed(f"@{tmp_path / 'words'}").inputs == names
    # As many options that each add to one list.
    (tmp_path / "words").write_text("\n".join(f"-L{name}" for name in names))
    assert parsed(f"@{tmp_path / 'words'}").values == {"library_path": tuple(names)}


def test_what_no_options_file_is(tmp_path: Path) -> None:
    assert mistake("-optf", str(tmp_path / "none")).startswith("Could not open options file")
    assert mistake("-optf", "/dev/zero") == "Could not open options file '/dev/zero'"


def test_an_options_file_has_a_largest_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(optionparse, "MAX_SIZE", 3)
    (tmp_path / "f").write_text("a b")
    assert parsed("-optf", str(tmp_path / "f")).inputs == ["a", "b"]
    (tmp_path / "f").write_text("a bc")
    assert mistake("-optf", str(tmp_path / "f")).endswith("it has more than 3 bytes")


def test_whole_archive_counts_for_what_comes_after_it(tmp_path: Path) -> None:
    (tmp_path / "words").write_text("d --no-whole-archive -lw")
    line = parsed("a", "-lx", "--whole-archive", "b", "-ly,z", f"@{tmp_path / 'words'}", "c")
    assert (line.inputs, line.whole_inputs) == (["a", "b", "d", "c"], [False, True, True, False])
    assert line.values["library"] == ("x", "y", "z", "w")
    assert line.whole_libraries == [False, True, True, False]


CHECKS: list[tuple[dict[str, Value], str]] = [
    ({}, "Unknown arch name '(null)'"),
    ({"arch": "sm_75"}, "Must specify output file with -o option"),
    (
        {"arch": "sm_75", "output_file": "o", "suppress_debug_info": True, "emit_ptx": True},
        "Conflicting options '-suppress-debug-info' and 'no -g'",
    ),
    (
        {
            "arch": "sm_75",
            "output_file": "o",
            "use_host_info": True,
            "ignore_host_info": True,
            "dump_callgraph": True,
            "dump_callgraph_no_demangle": True,
        },
        "Conflicting options '-dump-callgraph' and '-dump-callgraph-no-demangle'",
    ),
    (
        {"arch": "lto_75", "use_host_info": True, "ignore_host_info": True},
        "Conflicting options '-use-host-info' and '-ignore-host-info'",
    ),
    (
        {"arch": "lto_75", "dlto": True},
        "Link target of 'lto_75' is virtual target that is not JIT-able; use 'sm_' target instead",
    ),
    (
        {"arch": "sm_75", "output_file": "o", "emit_ptx": True},
        "Conflicting options '-emit-ptx' and 'no -dlto'",
    ),
    (
        {"arch": "sm_75", "output_file": "o", "Ofast_compile": "0"},
        "Conflicting options '--Ofast-compile' and 'no -dlto'",
    ),
    (
        {"arch": "sm_75", "output_file": "o", "dlto": True},
        "-nvvmpath should be specified with -lto",
    ),
]


@pytest.mark.parametrize(("values", "message"), CHECKS)
def test_checks(values: dict[str, Value], message: str) -> None:
    with pytest.raises(LinkError) as caught:
        check(values, Sink(), has_inputs=True, needs_output=True)
    assert str(caught.value).partition("\n")[0] == message


def test_inputs_are_missed_after_the_output_and_before_conflicts() -> None:
    values: dict[str, Value] = {"arch": "sm_75", "output_file": "o", "suppress_debug_info": True}
    with pytest.raises(LinkError, match="No input files specified"):
        check(values, Sink(), has_inputs=False, needs_output=True)


@pytest.mark.parametrize(
    "option",
    [option for option in OPTIONS if not option.built],
    ids=lambda option: option.long,
)
def test_what_is_not_built_is_refused_and_never_ignored(option: Option) -> None:
    samples: dict[str, Value] = {TEXT: "x", NUMBER: 1, TRUTH: False, LIST: ("x",)}
    values: dict[str, Value] = {"arch": "sm_75", "output_file": "o"}
    values[option.attribute] = samples.get(option.takes, True)
    with pytest.raises(LinkError, match=r"^Option '-\S+' is not supported by this version"):
        check(values, Sink(), has_inputs=True, needs_output=True)


def test_virtual_targets_are_refused() -> None:
    with pytest.raises(LinkError, match="'compute_75' is virtual"):
        check({"arch": "compute_75"}, Sink(), has_inputs=True, needs_output=True)


@pytest.mark.parametrize("used", ["kernels_used", "variables_used"])
def test_names_that_are_used_make_host_information_moot(used: str) -> None:
    values: dict[str, Value] = {"arch": "sm_75", "use_host_info": True, used: ("k",)}
    sink = Sink()
    check(values, sink, has_inputs=True, needs_output=False)
    assert [record.message for record in sink.diagnostics] == [
        "ignore -use-host-info because -kernels-used or -variables-used is specified"
    ]


def test_recorded_options_are_in_the_order_of_the_table() -> None:
    words = "-v -w -Werror -arch sm_75 -L . -l a,b -l c -m 0x40 -kernels-used k -o o --time t -r"
    assert note_text(parsed(*words.split()).values, ["x"]) == (
        "-arch sm_75 -m 64 -l a,b,c -L . -v  -w  -Werror  -kernels-used k -r  "
    )


def test_recorded_options_of_a_debug_link(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("-cpu-arch X86")
    words = f"-optf {tmp_path / 'f'} -g -arch sm_75 -o o -time t --register-link-binaries=reg"
    assert note_text(parsed(*words.split()).values, ["a", "b c"]) == (
        "a,b c -o o -g  -arch sm_75 - reg -cpu-arch X86 -time t -optf  "
    )


def test_options_are_frozen_and_typed_as_the_table_says() -> None:
    options = Options({"arch": "sm_75", "verbose": True, "library": ("a",)}, ["x"])
    assert (options.arch, options.verbose, options.library) == ("sm_75", True, ("a",))
    assert (options.debug, options.time, options.kernels_used) == (False, None, ())
    assert options.recorded == "-arch sm_75 -l a -v  "
    with pytest.raises(AttributeError, match="frozen"):
        options.verbose = False
    with pytest.raises(AttributeError, match="frozen"):
        del options.verbose
    types = {
        FLAG: "bool",
        LIST: "tuple[str, ...]",
        NUMBER: "int | None",
        SIZE: "int | None",
        TEXT: "str | None",
        TRUTH: "bool | None",
    }
    wanted = {option.attribute: types[option.takes] for option in OPTIONS}
    wanted |= {"arch": "str", "allows_no_code": "bool", "compiles": "bool"}
    wanted |= dict.fromkeys(("follows", "nvlink", "subject"), "str | None")
    wanted |= dict.fromkeys(("recorded", "recorded_output"), "str")
    stated = Options.__annotations__
    assert stated == {name: wanted[name] for name in stated}


def test_help_names_every_option_that_works_and_no_other() -> None:
    text = help_text("pylink")
    for option in OPTIONS:
        assert (f"--{option.long}" in text.split()) == option.built
    assert set(HELP) == {option.long for option in OPTIONS if option.built}
    assert max(map(len, text.splitlines())) <= 80


def test_an_option_that_nvlink_ignores_changes_nothing() -> None:
    cubin = one_kernel().build()
    plain = pylink.link([cubin], arch="sm_80").image
    assert compare(pylink.link([cubin], arch="sm_80", uumn=True).image, plain) == []
