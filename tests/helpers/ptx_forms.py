"""One small PTX kernel for each form of an arithmetic instruction.

They serve to compare the code of ptxas for two chips. A form is an instruction, the type of its
result and the types of its operands; an operand that is not a type is written unchanged. `module`
contains each form once, and once more with its result as an operand of the same instruction.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

ADDRESS = "[%addr+512]"
ALL = "0xffffffff"  # the mask of all lanes
# By type of an operand: the type of its registers.
REGISTERS = {
    **dict.fromkeys(("f16", "bf16", "u16", "s16", "b16"), "b16"),
    **dict.fromkeys(("u32", "s32", "b32", "f16x2", "bf16x2"), "b32"),
    **dict.fromkeys(("u64", "s64", "b64", "f32x2"), "b64"),
    **{name: name for name in ("f32", "f64", "pred")},
}
# Types of one or two floating-point numbers of 16 bits.
HALVES = ("f16", "f16x2", "bf16", "bf16x2")


class Form(NamedTuple):
    """An instruction, the type of its result, and its operands."""

    instruction: str
    result: str
    operands: tuple[str, ...]


class Mma(NamedTuple):
    """An mma instruction: shape, numbers of registers of C, A and B, types of C, and of A and B."""

    shape: str
    registers: tuple[int, int, int]
    of_c: str
    of_ab: str


MMAS = (
    Mma("m8n8k16.row.col.s32.s8.s8.s32", (2, 1, 1), "b32", "b32"),
    Mma("m16n8k16.row.col.s32.u8.s8.s32", (4, 2, 1), "b32", "b32"),
    Mma("m16n8k32.row.col.s32.s8.s8.s32", (4, 4, 2), "b32", "b32"),
    Mma("m16n8k64.row.col.s32.s4.s4.s32", (4, 4, 2), "b32", "b32"),
    Mma("m16n8k8.row.col.f32.f16.f16.f32", (4, 2, 1), "f32", "b32"),
    Mma("m16n8k16.row.col.f32.f16.f16.f32", (4, 4, 2), "f32", "b32"),
    Mma("m16n8k16.row.col.f16.f16.f16.f16", (2, 4, 2), "b32", "b32"),
    Mma("m16n8k16.row.col.f32.bf16.bf16.f32", (4, 4, 2), "f32", "b32"),
    Mma("m16n8k8.row.col.f32.tf32.tf32.f32", (4, 4, 2), "f32", "b32"),
    Mma("m16n8k32.row.col.f32.e4m3.e5m2.f32", (4, 4, 2), "f32", "b32"),
    Mma("m8n8k4.row.col.f64.f64.f64.f64", (2, 1, 1), "f64", "f64"),
    Mma("m16n8k16.row.col.f64.f64.f64.f64", (4, 8, 4), "f64", "f64"),
)


def _integers() -> Iterator[Form]:
    """Yield the forms of integer instructions."""
    for name in ("u16", "s16", "u32", "s32", "u64", "s64"):
        for operation in ("add", "sub", "mul.lo", "mul.hi", "div", "rem", "min", "max"):
            yield Form(f"{operation}.{name}", name, (name, name))
        yield Form(f"mad.lo.{name}", name, (name, name, name))
    for name, wide in (("u16", "u32"), ("s16", "s32"), ("u32", "u64"), ("s32", "s64")):
        yield Form(f"mul.wide.{name}", wide, (name, name))
        yield Form(f"mad.wide.{name}", wide, (name, name, wide))
    for name in ("u32", "s32"):
        yield Form(f"mul24.hi.{name}", name, (name, name))
        yield Form(f"sad.{name}", name, (name, name, name))
        yield Form(f"dp4a.{name}.{name}", name, ("b32", "b32", name))
        yield Form(f"bfe.{name}", name, (name, "u32", "u32"))
        yield Form(f"bfind.{name}", "u32", (name,))
        yield Form(f"vadd.{name}.{name}.{name}", name, (name, name))
        yield Form(f"vabsdiff4.{name}.{name}.{name}", name, (name, name, name))
        yield Form(f"vmax2.{name}.{name}.{name}", name, (name, name, name))
        yield Form(f"redux.sync.max.{name}", name, (name, ALL))
        yield Form(f"redux.sync.add.{name}", name, (name, ALL))
    for name in ("b32", "b64"):
        for operation in ("popc", "clz"):
            yield Form(f"{operation}.{name}", "u32", (name,))
        yield Form(f"brev.{name}", name, (name,))
        yield Form(f"xor.{name}", name, (name, name))
        yield Form(f"shl.{name}", name, (name, "u32"))
        yield Form(f"shr.s{name[1:]}", name, (name, "u32"))
        yield Form(f"bfi.{name}", name, (name, name, "u32", "u32"))
    yield Form("lop3.b32", "b32", ("b32", "b32", "b32", "0x5a"))
    yield Form("shf.l.wrap.b32", "b32", ("b32", "b32", "u32"))
    yield Form("prmt.b32", "b32", ("b32", "b32", "b32"))
    yield Form("fns.b32", "b32", ("b32", "b32", "s32"))
    yield Form("szext.clamp.s32", "s32", ("s32", "u32"))


def _floats() -> Iterator[Form]:
    """Yield the forms of floating-point instructions."""
    for name in ("f32", "f64"):
        for rounding in ("rn", "rz", "rp"):
            for operation in ("add", "mul", "div"):
                yield Form(f"{operation}.{rounding}.{name}", name, (name, name))
            yield Form(f"fma.{rounding}.{name}", name, (name, name, name))
            yield Form(f"rcp.{rounding}.{name}", name, (name,))
            yield Form(f"sqrt.{rounding}.{name}", name, (name,))
        for operation in ("min", "max", "copysign"):
            yield Form(f"{operation}.{name}", name, (name, name))
        yield Form(f"abs.{name}", name, (name,))
        for comparison in ("eq", "lt", "equ", "num"):
            yield Form(f"setp.{comparison}.{name}", "pred", (name, name))
            yield Form(f"set.{comparison}.u32.{name}", "u32", (name, name))
        yield Form(f"setp.lt.and.{name}", "pred", (name, name, "!%pp"))
        yield Form(f"testp.subnormal.{name}", "pred", (name,))
    yield Form("setp.lt.f64", "pred", ("f64", "0d3ff0000000000000"))
    yield Form("add.rn.f64", "f64", ("f64", "0d3ff0000000000000"))
    yield Form("rcp.approx.ftz.f64", "f64", ("f64",))
    yield Form("rsqrt.approx.f64", "f64", ("f64",))
    for operation in ("rcp", "sqrt", "rsqrt", "sin", "cos", "lg2", "ex2", "tanh"):
        yield Form(f"{operation}.approx.f32", "f32", ("f32",))
    yield Form("div.full.f32", "f32", ("f32", "f32"))
    for name in HALVES:
        for operation in ("add.rn", "mul.rn", "max.NaN"):
            yield Form(f"{operation}.{name}", name, (name, name))
        yield Form(f"fma.rn.relu.{name}", name, (name, name, name))
        yield Form(f"tanh.approx.{name}", name, (name,))
    yield Form("fma.rn.f32x2", "f32x2", ("f32x2", "f32x2", "f32x2"))


def _conversions() -> Iterator[Form]:
    """Yield the forms of conversions."""
    for integer in ("u16", "s16", "u32", "s32", "u64", "s64"):
        for name in ("f16", "bf16", "f32", "f64"):
            yield Form(f"cvt.rn.{name}.{integer}", name, (integer,))
            yield Form(f"cvt.rzi.{integer}.{name}", integer, (name,))
    yield Form("cvt.sat.s16.s64", "s16", ("s64",))
    for to, source in (("f32", "f64"), ("f16", "f32"), ("f16", "f64"), ("bf16", "f32")):
        yield Form(f"cvt.rn.{to}.{source}", to, (source,))
        yield Form(f"cvt.{source}.{to}", source, (to,))
    for name in ("f16", "f32", "f64"):
        yield Form(f"cvt.rpi.{name}.{name}", name, (name,))
    yield Form("cvt.rn.bf16x2.f32", "b32", ("f32", "f32"))
    yield Form("cvt.rna.tf32.f32", "b32", ("f32",))
    yield Form("cvt.rn.satfinite.e4m3x2.f32", "b16", ("f32", "f32"))
    yield Form("cvt.rn.f16x2.e5m2x2", "b32", ("b16",))
    yield Form("cvt.pack.sat.u8.s32.b32", "b32", ("s32", "s32", "b32"))


def _others() -> Iterator[Form]:
    """Yield the forms of atomics and other instructions."""
    for name in ("u32", "u64", "f32", "f64", "f16x2"):
        noftz = ".noftz" if name == "f16x2" else ""
        yield Form(f"atom.global.add{noftz}.{name}", name, (ADDRESS, name))
    for name in ("b32", "b64"):
        yield Form(f"atom.global.cas.{name}", name, (ADDRESS, name, name))
        yield Form(f"match.any.sync.{name}", "b32", (name, ALL))
        yield Form(f"ld.global.nc.{name}", name, (ADDRESS,))
        yield Form(f"ld.acquire.gpu.global.{name}", name, (ADDRESS,))
    yield Form("vote.sync.ballot.b32", "b32", ("%pp", ALL))
    yield Form("shfl.sync.bfly.b32", "b32", ("b32", "1", "31", ALL))
    for register in ("%clock", "%laneid", "%tid.x", "%smid", "%lanemask_lt"):
        yield Form("mov.u32", "u32", (register,))
    yield Form("mov.u64", "u64", ("%globaltimer",))


def forms() -> list[Form]:
    """Return all forms except those of mma."""
    return [*_integers(), *_floats(), *_conversions(), *_others()]


def module(sm: str, version: str) -> str:
    """Return PTX with a kernel for each form, for sm_`sm`, in a version of PTX."""
    parts = [f".version {version}\n.target sm_{sm}\n.address_size 64\n"]
    for number, form in enumerate(forms()):
        parts.append(_kernel(f"once{number}", form, repeats=False))
        if form.result in form.operands:
            parts.append(_kernel(f"twice{number}", form, repeats=True))
    parts += [_mma_kernel(f"mma{number}", mma) for number, mma in enumerate(MMAS)]
    return "".join(parts)


def _kernel(name: str, form: Form, *, repeats: bool) -> str:
    """Return the text of a kernel with one form, whose result `repeats` as an operand."""
    result = REGISTERS[form.result]
    lines = [f".reg .{result} %d;"]
    operands = []
    for number, operand in enumerate(form.operands):
        kind = REGISTERS.get(operand)
        operands.append(f"%s{number}" if kind else operand)
        if kind:
            lines.append(f".reg .{kind} %s{number};")
            lines.append(f"ld.global.{kind} %s{number}, [%addr+{8 * number}];")
    once = f"{form.instruction} {', '.join(('%d', *operands))};"
    lines.append(once)
    if repeats:
        lines += [f"mov.{result} %s{form.operands.index(form.result)}, %d;", once]
    if result == "pred":
        lines += ["selp.b32 %t, 1, 0, %d;", "st.global.b32 [%addr+256], %t;"]
    else:
        lines.append(f"st.global.{result} [%addr+256], %d;")
    return _entry(name, lines)


def _mma_kernel(name: str, mma: Mma) -> str:
    """Return the text of a kernel with one mma."""
    lines = []
    kinds = (mma.of_c, mma.of_ab, mma.of_ab)
    lists = {}
    for matrix, count, kind in zip("cab", mma.registers, kinds, strict=True):
        names = [f"%{matrix}{number}" for number in range(count)]
        lists[matrix] = "{" + ",".join(names) + "}"
        lines += [f".reg .{kind} {register};" for register in names]
        lines += [
            f"ld.global.{kind} {register}, [%addr+{8 * number}];"
            for number, register in enumerate(names)
        ]
    once = f"mma.sync.aligned.{mma.shape} {lists['c']},{lists['a']},{lists['b']},{lists['c']};"
    lines += [once, once]
    lines += [
        f"st.global.{mma.of_c} [%addr+{256 + 8 * number}], %c{number};"
        for number in range(mma.registers[0])
    ]
    return _entry(name, lines)


def _entry(name: str, lines: list[str]) -> str:
    """Return a kernel with these lines as its body."""
    body = "\n".join(f"    {line}" for line in lines)
    return f"""
.visible .entry {name}(.param .u64 p)
{{
    .reg .b64 %addr;
    .reg .pred %pp;
    .reg .b32 %t;
    ld.param.u64 %addr, [p];
    ld.global.b32 %t, [%addr+600];
    setp.ne.b32 %pp, %t, 0;
{body}
    ret;
}}
"""
