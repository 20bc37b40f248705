"""Opcodes and what they do to one lane.

A row is an instruction and a function of the registers and predicates of a lane, which gives what
is written. Nothing here shares code with `semantics`.
"""

from __future__ import annotations

import math
from fractions import Fraction

from emulator.apart import (
    FORMATS,
    M64,
    NANS,
    M,
    Reference,
    arithmetic,
    double,
    extend,
    extend_byte,
    f16,
    f32,
    f64,
    halfwords,
    halves,
    lut,
    pair,
    prmt,
    rounded,
    s32,
    s64,
    shift64,
    single,
    to_integer,
    two,
)

ROWS: dict[str, Reference] = {
    "IADD3 R0, R1, R2, R3": lambda r, p: {"R0": r[1] + r[2] + r[3] & M},
    "IADD3 R0, R1, -R2, R3": lambda r, p: {"R0": r[1] - r[2] + r[3] & M},
    "IADD3 R0, P0, R1, R2, RZ": lambda r, p: {"R0": r[1] + r[2] & M, "P0": r[1] + r[2] > M},
    "IADD3 R0, P0, R1, -R2, RZ": lambda r, p: {"R0": r[1] - r[2] & M, "P0": r[1] >= r[2]},
    "IADD3.X R0, R1, ~R2, RZ, P1, !PT": lambda r, p: {"R0": r[1] + (~r[2] & M) + p[1] & M},
    "IADD3.X R0, P0, R1, R2, RZ, P1, !PT": lambda r, p: {
        "R0": r[1] + r[2] + p[1] & M,
        "P0": r[1] + r[2] + p[1] > M,
    },
    "IADD.64 R0, R2, -R4": lambda r, p: two(0, pair(r, 2) - pair(r, 4)),
    "IADD.64 R0, P0, R2, R4": lambda r, p: (
        two(0, pair(r, 2) + pair(r, 4) & M64) | {"P0": pair(r, 2) + pair(r, 4) > M64}
    ),
    "IADD.64 R0, P0, R2, -R4": lambda r, p: (
        two(0, pair(r, 2) - pair(r, 4) & M64) | {"P0": pair(r, 2) >= pair(r, 4)}
    ),
    "IADD.64.X R0, R2, ~R4, P1": lambda r, p: two(0, pair(r, 2) - pair(r, 4) - 1 + p[1] & M64),
    "IMAD R0, R1, R2, R3": lambda r, p: {"R0": r[1] * r[2] + r[3] & M},
    "IMAD R0, R1, R2, -R3": lambda r, p: {"R0": r[1] * r[2] - r[3] & M},
    "IMAD.WIDE R0, R2, R3, R4": lambda r, p: two(0, s32(r[2]) * s32(r[3]) + pair(r, 4) & M64),
    "IMAD.WIDE.U32 R0, R2, R3, R4": lambda r, p: two(0, r[2] * r[3] + pair(r, 4) & M64),
    "IMAD.WIDE.U32 R0, P0, R2, R3, R4": lambda r, p: (
        two(0, r[2] * r[3] + pair(r, 4) & M64) | {"P0": r[2] * r[3] + pair(r, 4) > M64}
    ),
    "IMAD.WIDE.U32 R0, P0, R2, R3, RZ": lambda r, p: two(0, r[2] * r[3]) | {"P0": False},
    "ISETP.LE.U32.AND P0, PT, R1, R2, PT": lambda r, p: {"P0": r[1] <= r[2]},
    "IMAD.HI R0, R1, R2, RZ": lambda r, p: {"R0": s32(r[1]) * s32(r[2]) >> 32 & M},
    "IMAD.HI.U32 R0, R1, R2, R4": lambda r, p: {"R0": r[1] * r[2] + pair(r, 4) >> 32 & M},
    "IMAD.X R0, R1, 0x1, ~R2, P1": lambda r, p: {"R0": r[1] + (~r[2] & M) + p[1] & M},
    "LEA R0, R1, R2, 0x3": lambda r, p: {"R0": (r[1] << 3) + r[2] & M},
    "LEA R0, P0, R1, R2, 0x3": lambda r, p: {
        "R0": (r[1] << 3) + r[2] & M,
        "P0": (r[1] << 3 & M) + r[2] > M,
    },
    "LEA.HI R0, R1, R2, R3, 0x5": lambda r, p: {"R0": ((r[1] | r[3] << 32) << 5 >> 32) + r[2] & M},
    "LEA.HI.X.SX32 R0, R1, R2, 0x1, P1": lambda r, p: {
        "R0": (s32(r[1]) << 1 >> 32) + r[2] + p[1] & M
    },
    "LOP3.LUT R0, R1, R2, R3, 0xd8, !PT": lambda r, p: {"R0": lut(0xD8, r[1], r[2], r[3])},
    "LOP3.LUT R0, R1, R2, R3, 0x96, !PT": lambda r, p: {"R0": lut(0x96, r[1], r[2], r[3])},
    "LOP3.LUT P0, R0, R1, R2, RZ, 0xc0, !PT": lambda r, p: {
        "R0": r[1] & r[2],
        "P0": r[1] & r[2] != 0,
    },
    "PLOP3.LUT P0, P2, P1, !P3, PT, 0x22, 0x88": lambda r, p: {
        "P0": bool(0x22 >> (p[1] * 4 + (not p[3]) * 2 + 1) & 1),
        "P2": bool(0x88 >> (p[1] * 4 + (not p[3]) * 2 + 1) & 1),
    },
    "SHF.L.U32 R0, R1, R7, RZ": lambda r, p: {"R0": shift64(r[1], min(r[7], 32), False) & M},
    "SHF.L.U32 R0, R1, 0x5, RZ": lambda r, p: {"R0": r[1] << 5 & M},
    "SHF.R.U32.HI R0, RZ, 0x5, R2": lambda r, p: {"R0": r[2] >> 5},
    "SHF.R.S32.HI R0, RZ, 0x5, R2": lambda r, p: {"R0": s32(r[2]) >> 5 & M},
    "SHF.R.S32.HI R0, RZ, R7, R2": lambda r, p: {"R0": s32(r[2]) >> min(r[7], 32) & M},
    "SHF.R.U64 R0, R1, R7, R2": lambda r, p: {
        "R0": shift64(r[1] | r[2] << 32, min(r[7], 64), True) & M
    },
    "SHF.R.S64 R0, R1, R7, R2": lambda r, p: {
        "R0": shift64(r[1] | r[2] << 32, min(r[7], 64), True, True) & M
    },
    "SHF.L.U64.HI R0, R1, R7, R2": lambda r, p: {
        "R0": shift64(r[1] | r[2] << 32, min(r[7], 64), False) >> 32
    },
    "SHF.L.W.U32.HI R0, R1, R7, R2": lambda r, p: {
        "R0": shift64(r[1] | r[2] << 32, r[7] & 31, False) >> 32
    },
    "ISETP.LT.AND P0, P2, R1, R2, P1": lambda r, p: {
        "P0": s32(r[1]) < s32(r[2]) and p[1],
        "P2": not s32(r[1]) < s32(r[2]) and p[1],
    },
    "ISETP.GE.U32.OR P0, PT, R1, R2, P1": lambda r, p: {"P0": r[1] >= r[2] or p[1]},
    "ISETP.NE.XOR P0, PT, R1, R2, P1": lambda r, p: {"P0": (r[1] != r[2]) != p[1]},
    "ISETP.LE.AND.EX P0, PT, R1, R2, PT, P1": lambda r, p: {
        "P0": s32(r[1]) < s32(r[2]) or (r[1] == r[2] and p[1])
    },
    "ISETP.EQ.AND.EX P0, PT, R1, R2, PT, P1": lambda r, p: {"P0": r[1] == r[2] and p[1]},
    "ISETP.GT.S64.AND P0, PT, R2, R4, PT": lambda r, p: {"P0": s64(pair(r, 2)) > s64(pair(r, 4))},
    "IMNMX R0, R1, R2, PT": lambda r, p: {"R0": min(s32(r[1]), s32(r[2])) & M},
    "IMNMX.U32 R0, R1, R2, !PT": lambda r, p: {"R0": max(r[1], r[2])},
    "VIMNMX.S16x2 R0, R1, R2, !PT": lambda r, p: halfwords(r, max),
    "VIMNMX3 R0, R1, R2, R3, PT": lambda r, p: {"R0": min(map(s32, r[1:4])) & M},
    "VIADDMNMX R0, R1, R2, R3, !PT": lambda r, p: {"R0": max(s32(r[1] + r[2] & M), s32(r[3])) & M},
    "VIMNMX.RELU R0, R1, R2, PT": lambda r, p: {"R0": max(min(s32(r[1]), s32(r[2])), 0)},
    "VIADD.16x2 R0, R1, R2": lambda r, p: halfwords(r, lambda x, y: x + y),
    "VIADD R0, R1, -R2": lambda r, p: {"R0": r[1] - r[2] & M},
    "VABSDIFF R0, R1, R2, R3": lambda r, p: {"R0": abs(s32(r[1]) - s32(r[2])) + r[3] & M},
    "VABSDIFF4.U8 R0, R1, R2, RZ": lambda r, p: {
        "R0": sum(abs((r[1] >> i & 255) - (r[2] >> i & 255)) << i for i in (0, 8, 16, 24))
    },
    "IDP.4A.S8.S8 R0, R1, R2, R3": lambda r, p: {
        "R0": sum(extend_byte(r[1] >> i) * extend_byte(r[2] >> i) for i in (0, 8, 16, 24)) + r[3]
        & M
    },
    "POPC R0, R1": lambda r, p: {"R0": bin(r[1]).count("1")},
    "FLO.U32 R0, R1": lambda r, p: {"R0": r[1].bit_length() - 1 & M},
    "FLO.SH R0, R1": lambda r, p: {
        "R0": 31 - n & M
        if (n := (r[1] if not r[1] >> 31 else ~r[1] & M).bit_length() - 1) >= 0
        else M
    },
    "BREV R0, R1": lambda r, p: {"R0": int(f"{r[1]:032b}"[::-1], 2)},
    "IABS R0, R1": lambda r, p: {"R0": abs(s32(r[1])) & M},
    "PRMT R0, R1, R2, R3": lambda r, p: {"R0": prmt(r[1], r[2], r[3])},
    "SGXT R0, R1, R7": lambda r, p: {"R0": extend(r[1], r[7], True)},
    "SGXT.U32 R0, R1, R7": lambda r, p: {"R0": extend(r[1], r[7], False)},
    "BMSK R0, R7, R6": lambda r, p: {"R0": (1 << min(r[6], 32)) - 1 << min(r[7], 32) & M},
    "SEL R0, R1, R2, P1": lambda r, p: {"R0": r[1] if p[1] else r[2]},
    "FSEL R0, -R1, |R2|, P1": lambda r, p: {"R0": r[1] ^ 1 << 31 if p[1] else r[2] & M >> 1},
    "MOV R0, R1": lambda r, p: {"R0": r[1]},
    "P2R R0, PR, R1, 0x7f": lambda r, p: {"R0": r[1] & ~0x7F | sum(p[i] << i for i in range(7))},
    "FADD R0, R1, R2": lambda r, p: single(f32(r[1]), 1.0, f32(r[2])),
    "FADD R0, -R1, |R2|": lambda r, p: single(-f32(r[1]), 1.0, abs(f32(r[2]))),
    "FADD.RZ R0, R1, R2": lambda r, p: single(f32(r[1]), 1.0, f32(r[2]), "RZ"),
    "FMUL R0, R1, R2": lambda r, p: single(f32(r[1]), f32(r[2]), None),
    "FMUL.RP R0, R1, R2": lambda r, p: single(f32(r[1]), f32(r[2]), None, "RP"),
    "FFMA R0, R1, R2, R3": lambda r, p: single(f32(r[1]), f32(r[2]), f32(r[3])),
    "FFMA.RM R0, R1, R2, R3": lambda r, p: single(f32(r[1]), f32(r[2]), f32(r[3]), "RM"),
    "FFMA.RZ R0, R1, R2, R3": lambda r, p: single(f32(r[1]), f32(r[2]), f32(r[3]), "RZ"),
    "FSETP.GEU.AND P0, PT, R1, R2, P1": lambda r, p: {"P0": not f32(r[1]) < f32(r[2]) and p[1]},
    "FSETP.NE.OR P0, PT, R1, R2, P1": lambda r, p: {
        "P0": (f32(r[1]) < f32(r[2]) or f32(r[1]) > f32(r[2])) or p[1]
    },
    "FSETP.NAN.AND P0, P2, R1, R2, PT": lambda r, p: {
        "P0": (n := math.isnan(f32(r[1])) or math.isnan(f32(r[2]))),
        "P2": not n,
    },
    "HADD2 R0, R1, R2": lambda r, p: halves("f16", r, 2, lambda x, y: arithmetic("f16", x, 1.0, y)),
    "HMUL2 R0, R1, R2": lambda r, p: halves(
        "f16", r, 2, lambda x, y: arithmetic("f16", x, y, None)
    ),
    "HFMA2 R0, R1, R2, R3": lambda r, p: halves(
        "f16", r, 3, lambda x, y, z: arithmetic("f16", x, y, z)
    ),
    "HFMA2.BF16_V2 R0, R1, R2, R3": lambda r, p: halves(
        "bf16", r, 3, lambda x, y, z: arithmetic("bf16", x, y, z)
    ),
    "HADD2.F32 R0, -RZ, R1.H1_H1": lambda r, p: single(f16(r[1] >> 16), 1.0, -0.0),
    "I2F R0, R1": lambda r, p: {"R0": rounded(Fraction(s32(r[1])), *FORMATS["f32"])},
    "I2F.U32.RP R0, R1": lambda r, p: {"R0": rounded(Fraction(r[1]), *FORMATS["f32"], "RP")},
    "I2F.S64 R0, R2": lambda r, p: {"R0": rounded(Fraction(s64(pair(r, 2))), *FORMATS["f32"])},
    "I2F.F64.U64 R0, R2": lambda r, p: two(0, rounded(Fraction(pair(r, 2)), *FORMATS["f64"])),
    "F2I.TRUNC.NTZ R0, R1": lambda r, p: {
        "R0": to_integer(f32(r[1]), -(1 << 31), (1 << 31) - 1, math.trunc, 0) & M
    },
    "F2I.U32.FLOOR.NTZ R0, R1": lambda r, p: {"R0": to_integer(f32(r[1]), 0, M, math.floor, 0)},
    "F2I.S64.TRUNC R0, R1": lambda r, p: two(
        0, to_integer(f32(r[1]), -(1 << 63), (1 << 63) - 1, math.trunc, 1 << 63)
    ),
    "F2F.F16.F32 R0, R1": lambda r, p: {
        "R0": NANS["f16"] if (n := arithmetic("f16", f32(r[1]), 1.0, None)) is None else n
    },
    "F2FP.BF16.F32.PACK_AB R0, R1, R2": lambda r, p: {
        "R0": sum(
            (NANS["bf16"] if (n := arithmetic("bf16", f32(x), 1.0, None)) is None else n) << shift
            for x, shift in ((r[1], 16), (r[2], 0))
        )
    },
}


ROWS |= {
    "DADD R0, R2, -R4": lambda r, p: double(f64(pair(r, 2)), 1.0, -f64(pair(r, 4))),
    "DADD.RZ R0, R2, R4": lambda r, p: double(f64(pair(r, 2)), 1.0, f64(pair(r, 4)), "RZ"),
    "DMUL R0, R2, R4": lambda r, p: double(f64(pair(r, 2)), f64(pair(r, 4)), None),
    "DMUL.RP R0, R2, R4": lambda r, p: double(f64(pair(r, 2)), f64(pair(r, 4)), None, "RP"),
    "DFMA R0, R2, R4, R6": lambda r, p: double(f64(pair(r, 2)), f64(pair(r, 4)), f64(pair(r, 6))),
    "DFMA.RM R0, R2, R4, R6": lambda r, p: double(
        f64(pair(r, 2)), f64(pair(r, 4)), f64(pair(r, 6)), "RM"
    ),
    "DSETP.LTU.AND P0, PT, R2, R4, PT": lambda r, p: {"P0": not f64(pair(r, 2)) >= f64(pair(r, 4))},
}
