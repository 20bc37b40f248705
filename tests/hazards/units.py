"""Which instructions share a unit that works in order.

Waiting for one of them tells that those in front of it are as far, so the compiler gives only some
of them scoreboards. A predicated instruction goes through its unit even where its predicate is
false. That this holds is seen in ptxas's own code, where no access is left that it does not explain
(`learn`).
"""

from __future__ import annotations

from hazards.words import NONE, Control

MEMORY = frozenset(
    [
        "ATOM",
        "ATOMG",
        "ATOMS",
        "CCTL",
        "LD",
        "LDG",
        "LDGMC",
        "LDGSTS",
        "LDL",
        "LDS",
        "LDSM",
        "RED",
        "REDAS",
        "REDG",
        "SHFL",
        "ST",
        "STAS",
        "STG",
        "STL",
        "STS",
        "STSM",
        "SUATOM",
        "SULD",
        "SURED",
        "SUST",
        "TEX",
        "TLD",
        "TLD4",
        "TMML",
        "TXD",
        "TXQ",
    ]
)
SHARED = frozenset(["ATOMS", "LDS", "LDSM", "SHFL"])
TEXTURE = frozenset(["TEX", "TLD", "TLD4", "TMML", "TXD", "TXQ"])
CONVERSION = frozenset(["BREV", "F2F", "F2I", "FCHK", "FLO", "FRND", "I2F", "MUFU", "POPC"])
DOUBLE = frozenset(["DADD", "DFMA", "DMNMX", "DMUL", "DSETP"])
SPECIAL = frozenset(["S2R", "S2UR"])
PRODUCTS = frozenset(["HMMA", "IMMA", "BMMA", "DMMA", "QMMA", "OMMA"])

# Units that read the sources of their instructions one after the other, and those whose results
# come so.
SOURCES = {"memory": MEMORY, "conversion": CONVERSION, "double": DOUBLE, "product": PRODUCTS}
RESULTS = {
    "shared": SHARED,
    "texture": TEXTURE,
    "conversion": CONVERSION,
    "double": DOUBLE,
    "special": SPECIAL,
    "product": PRODUCTS,
}
SOURCE_UNIT = {base: f"sources of {unit}" for unit, bases in SOURCES.items() for base in bases}
RESULT_UNIT = {base: f"results of {unit}" for unit, bases in RESULTS.items() for base in bases}


def read_before(base: str) -> frozenset[str]:
    """Instructions whose sources are read before the result of a later `base` is written.

    Both are in one unit that reads in order, so `base` may overwrite these sources without a wait.
    Textures share a unit with memory, but no code of ptxas shows this of a texture and something
    else.
    """
    if base in TEXTURE:
        return TEXTURE
    unit = next((bases for bases in SOURCES.values() if base in bases), frozenset[str]())
    return unit - TEXTURE


def written_before(base: str) -> frozenset[str]:
    """Instructions whose results are written before that of a later `base`: LDS after LDS.

    ptxas relies on it on every chip. The tables say more where its code showed more.
    """
    return frozenset({"LDS"}) if base == "LDS" else frozenset()


# A barrier of the block waits for the accesses to memory in front of it to have read their sources:
# ptxas gives these no scoreboard there.
BARRIER = "BAR"
AT_BARRIERS = MEMORY - TEXTURE

# Their predicate, whether the address was in global memory, is there when the sources were read.
EARLY_RESULTS = frozenset({"ATOM"})


def has_early_predicate(base: str, control: Control) -> bool:
    """Whether the predicate of an instruction has another scoreboard than its register."""
    return base in EARLY_RESULTS and NONE not in (control.write, control.read)


# What orders memory: their scoreboard is awaited before memory is touched again.
FENCES = frozenset(["MEMBAR", "FENCE", "CCTL", "ERRBAR"])

# What goes on after its scoreboards: products of a warp group, tensor memory, copies. Groups and
# mbarriers keep their order, and this checker does not follow these: it says how many there are.
ASYNCHRONOUS = frozenset(
    [
        "ARRIVES",
        "BGMMA",
        "HGMMA",
        "IGMMA",
        "LDGSTS",
        "LDTM",
        "QGMMA",
        "STTM",
        "UBLKCP",
        "UBLKRED",
        "UTCBAR",
        "UTCCP",
        "UTCHMMA",
        "UTCIMMA",
        "UTCMXQMMA",
        "UTCOMMA",
        "UTCQMMA",
        "UTCSHIFT",
        "UTMALDG",
        "UTMAREDG",
        "UTMASTG",
    ]
)

# Units of fixed latency, and of what reads early or late, for pairs of instructions that are seldom
# seen.
FLOAT = frozenset(["FADD", "FFMA", "FMUL", "FFMA2", "FADD2", "FMUL2", "IMAD", "IDP"])
BRANCHES = frozenset(
    [
        "BRA",
        "BREAK",
        "BRX",
        "BSSY",
        "BSYNC",
        "CALL",
        "EXIT",
        "JMP",
        "RET",
        "WARPSYNC",
        "BRXU",
        "JMX",
    ]
)


def kind(base: str) -> str:
    """The kind of unit that executes an instruction, written with a tilde."""
    if base in PRODUCTS:
        return "~product"
    if base in MEMORY:
        return "~memory"
    if base in CONVERSION:
        return "~conversion"
    if base in DOUBLE:
        return "~double"
    if base in BRANCHES:
        return "~branch"
    if base in FLOAT:
        return "~float"
    if base.startswith("U"):
        return "~uniform"
    return "~half" if base.startswith("H") else "~other"
