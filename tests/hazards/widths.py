"""How many registers and predicates operands have, by the names of instructions."""

from __future__ import annotations

# Instructions without a destination: all their operands are read.
READS_ONLY = frozenset(
    [
        "ACQBULK",
        "ARRIVES",
        "BAR",
        "BPT",
        "BRA",
        "BREAK",
        "BRX",
        "BRXU",
        "BSSY",
        "BSYNC",
        "CALL",
        "CCTL",
        "CCTLL",
        "CCTLT",
        "CGAERRBAR",
        "DEPBAR",
        "ENDCOLLECTIVE",
        "ERRBAR",
        "EXIT",
        "FENCE",
        "JMP",
        "JMX",
        "JMXU",
        "KILL",
        "LDGDEPBAR",
        "LDGSTS",
        "MEMBAR",
        "NANOSLEEP",
        "NOP",
        "PMTRIG",
        "PREEXIT",
        "R2B",
        "R2P",
        "RED",
        "REDAS",
        "REDG",
        "RET",
        "RTT",
        "SETMAXREG",
        "ST",
        "STAS",
        "STG",
        "STL",
        "STS",
        "STSM",
        "STTM",
        "SURED",
        "SUST",
        "UBLKCP",
        "UBLKPF",
        "UBLKRED",
        "UCGABAR_ARV",
        "UCGABAR_WAIT",
        "USETMAXREG",
        "UTCATOMSWS",
        "UTCBAR",
        "UTCCP",
        "UTCHMMA",
        "UTCIMMA",
        "UTCMXQMMA",
        "UTCOMMA",
        "UTCQMMA",
        "UTCSHIFT",
        "UTMACCTL",
        "UTMACMDFLUSH",
        "UTMALDG",
        "UTMAPF",
        "UTMAREDG",
        "UTMASTG",
        "UVIRTCOUNT",
        "WARPGROUP",
        "WARPGROUPSET",
        "WARPSYNC",
        "YIELD",
    ]
)
TEXTURES = frozenset(["TEX", "TLD", "TLD4", "TMML", "TXD", "TXQ"])
# One or two predicates that are written, and nothing else.
COMPARES = frozenset(
    [
        "CSETP",
        "DSETP",
        "FCHK",
        "FSETP",
        "HSETP2",
        "ISETP",
        "PLOP3",
        "PSETP",
        "UFSETP",
        "UISETP",
        "UPLOP3",
        "UPSETP",
    ]
)
# Predicates that are written in front of the register.
PREDICATES_BEFORE = {
    **dict.fromkeys((*COMPARES, "IMNMX"), 2),
    **dict.fromkeys(
        [
            "ATOM",
            "ATOMG",
            "ATOMS",
            "ELECT",
            "FCHK",
            "LD",
            "LDG",
            "LOP3",
            "MATCH",
            "QSPC",
            "R2UR",
            "SHFL",
            "SUATOM",
            "SULD",
            "SUQUERY",
            "SYNCS",
            "ULOP3",
        ],
        1,
    ),
    **dict.fromkeys(TEXTURES, 1),
}
# Predicates that are written behind it.
PREDICATES_BEHIND = {
    **dict.fromkeys(["IADD3", "UIADD3", "UVIMNMX", "VIMNMX", "VIMNMX3"], 2),
    **dict.fromkeys(
        [
            "FLO",
            "IADD",
            "IADD2",
            "IMAD",
            "LDTM",
            "LEA",
            "UFLO",
            "UIADD",
            "UIMAD",
            "ULEA",
            "VIADD",
            "VIADDMNMX",
            "VOTE",
            "VOTEU",
        ],
        1,
    ),
}
# Values of a texture's coordinates.
DIMENSIONS = {"1D": 1, "2D": 2, "3D": 3, "CUBE": 3}
DIMENSIONS |= {f"ARRAY_{name}": count + 1 for name, count in DIMENSIONS.items()}

_SHAPES = """
HMMA 16816 4424  HMMA 1688 4214  HMMA 1684 4214  HMMA 884 8228  HMMA 16832 4444
IMMA 16832 4424  IMMA 16816 4214 IMMA 8816 2112  IMMA 16864 4424 IMMA 8832 2112 IMMA 168128 4444
BMMA 168256 4424 BMMA 168128 4214 BMMA 88128 2112
DMMA 884 4224 DMMA 8x8x4 4224 DMMA 16x8x4 8428 DMMA 1684 8428 DMMA 16x8x8 8848 DMMA 1688 8848
QMMA 16832 4424 QMMA 16816 4214 QMMA 16864 4444 OMMA 16864 4424 OMMA 168128 4444
"""
_words = _SHAPES.split()
# Registers of result, first, second and third factor of a matrix product, by its shape.
SHAPES = {
    (base, shape): tuple(map(int, counts))
    for base, shape, counts in zip(_words[::3], _words[1::3], _words[2::3], strict=True)
}
for _shape in ("16x8x16", "16816"):
    SHAPES["DMMA", _shape] = (8, 16, 8, 8)
