"""Examples of frequent diagnostics: a command, what it prints, and a command that works instead.

Only docs/diagnostics.md shows them. `tests/unit/test_diagnostics_examples.py` runs each command
with the files that `FILES` describes.
"""

from __future__ import annotations

from dataclasses import dataclass

FILES = """\
In the examples, `main.cubin` has a kernel that calls `scale`. `scale.cubin` and `other.cubin`
define `scale`. All are for sm_80, and `out.cubin` is linked from the first two. `empty.cubin` is
empty, and `notes.txt` is a text.
"""


@dataclass(frozen=True, slots=True)
class Example:
    """The arguments of a `pylink` command that causes a diagnostic, and what it prints.

    These are `command` and `output`. `correct` has the arguments of a command that works; it is
    empty if no other command helps.
    """

    command: str
    output: str
    correct: str = ""


# Arguments of a link that works: without its output, and all.
_INPUTS = "-arch=sm_80 main.cubin scale.cubin"
_CORRECT = f"{_INPUTS} -o out.cubin"

# By the name of the kind of diagnostic.
# fmt: off
EXAMPLES = {
    "unknown-option": Example(f"{_INPUTS} --output-fil out.cubin",
        "pylink fatal   : Unknown option '-output-fil'\n"
        "pylink note    : '--output-fil': did you mean '--output-file'?",
        f"{_INPUTS} --output-file out.cubin"),
    "argument-expected": Example(f"{_INPUTS} -o",
        "pylink fatal   : argument expected after '-o'",
        _CORRECT),
    "undefined-value": Example(f"{_CORRECT} --color=sometimes",
        "pylink fatal   : Value 'sometimes' is not defined for option 'color'",
        f"{_CORRECT} --color=auto"),
    "conflicting-options": Example(f"{_CORRECT} --emit-ptx",
        "pylink fatal   : Conflicting options '-emit-ptx' and 'no -dlto'",
        _CORRECT),
    "no-output-file": Example(_INPUTS,
        "pylink fatal   : Must specify output file with -o option",
        _CORRECT),
    "no-input-files": Example("-arch=sm_80 -o out.cubin",
        "pylink fatal   : No input files specified; use option --help for more information",
        _CORRECT),
    "unknown-arch": Example("main.cubin scale.cubin -o out.cubin",
        "pylink fatal   : Unknown arch name '(null)'\n"
        "pylink note    : no target given; use -arch, for example -arch=sm_90",
        _CORRECT),
    "option-not-built": Example(f"{_CORRECT} -uidx index",
        "pylink fatal   : Option '-uidx' is not supported by this version of pylink",
        _CORRECT),
    "number-expected": Example(f"{_CORRECT} --threads=two",
        "pylink fatal   : 'two': expected a number",
        f"{_CORRECT} --threads=2"),
    "unknown-diagnostic": Example(f"{_CORRECT} --diag-suppress=not-foldd",
        "pylink fatal   : invalid error number in diagnostic control option: not-foldd\n"
        "pylink note    : 'not-foldd': did you mean 'not-folded'?",
        f"{_CORRECT} --diag-suppress=not-folded"),
    "virtual-target-not-built": Example("-arch=compute_80 main.cubin scale.cubin -o out.cubin",
        "pylink fatal   : Link target 'compute_80' is virtual, which this version of pylink "
        "does not support; use 'sm_' target instead",
        _CORRECT),
    "cannot-open-input": Example("-arch=sm_80 main.cubin scales.cubin -o out.cubin",
        "pylink fatal   : Could not open input file 'scales.cubin'\n"
        "pylink note    : No such file or directory",
        _CORRECT),
    "output-is-input": Example(f"{_INPUTS} -o scale.cubin",
        "pylink fatal   : Output file 'scale.cubin' would overwrite an input (-o: 'scale.cubin')",
        _CORRECT),
    "output-named-twice": Example(f"{_CORRECT} --Map=out.cubin",
        "pylink fatal   : -o and --Map both write 'out.cubin' (--Map calls it 'out.cubin')",
        f"{_CORRECT} --Map=out.map"),
    "unknown-command": Example("inspekt out.cubin",
        "pylink fatal   : Unknown command 'inspekt'\n"
        "pylink note    : 'inspekt': did you mean 'inspect'?",
        "inspect out.cubin"),
    "arch-mismatch": Example("-arch=sm_90 main.cubin scale.cubin -o out.cubin",
        "pylink fatal   : Input file 'main.cubin' arch does not match target 'sm_90'\n"
        "pylink note    : it was compiled for sm_80; the target is sm_90",
        _CORRECT),
    "library-missing": Example("-arch=sm_80 main.cubin -lscale -o out.cubin",
        "pylink error   : Library -lscale not found in any directory, as -L names none; use "
        "--allow-missing-libraries to ignore it",
        _CORRECT),
    "empty-file": Example("-arch=sm_80 main.cubin empty.cubin -o out.cubin",
        "pylink error   : Input file 'empty.cubin' is empty"),
    "wrong-type": Example("-arch=sm_80 out.cubin -o again.cubin",
        "pylink error   : Input file 'out.cubin' is not relocatable (ELF type 2); compile it "
        "with -rdc=true or -dc"),
    "unknown-input": Example("-arch=sm_80 main.cubin notes.txt -o out.cubin",
        "pylink error   : Input file 'notes.txt' is not a cubin, fat binary, host object, "
        "archive, PTX or LTO-IR file\n"
        "pylink note    : it is a text",
        _CORRECT),
    "undefined-reference": Example("-arch=sm_80 main.cubin -o out.cubin",
        "pylink error   : Undefined reference to 'scale' in 'main.cubin'",
        _CORRECT),
    "multiple-definition": Example(f"{_INPUTS} other.cubin -o out.cubin",
        "pylink error   : Multiple definition of 'scale' in 'other.cubin', first defined in "
        "'scale.cubin'\n"
        "pylink note    : 'other.cubin' and 'scale.cubin' have the same contents; link one "
        "of them\n"
        "pylink fatal   : merge_elf failed",
        _CORRECT),
}
# fmt: on
