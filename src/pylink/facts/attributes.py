"""Attribute numbers of .nv.info (EIATTR) and .nv.compat (EICOMPAT) records, and record formats.

The names are those that the public `cuobjdump` 13.2 prints for records of each number; it prints
none for the numbers marked `-`. Other releases of the tool name 0x68 to 0x6d.
"""

from __future__ import annotations

# Formats of a record's value: no value, 8 bits, 16 bits, or a size of 16 bits and then that many
# bytes.
NVAL, BVAL, HVAL, SVAL = 1, 2, 3, 4
FORMATS = {NVAL: "NVAL", BVAL: "BVAL", HVAL: "HVAL", SVAL: "SVAL"}

_EIATTR = """
    ERROR PAD IMAGE_SLOT JUMPTABLE_RELOCS CTAIDZ_USED MAX_THREADS IMAGE_OFFSET IMAGE_SIZE
    TEXTURE_NORMALIZED SAMPLER_INIT PARAM_CBANK SMEM_PARAM_OFFSETS CBANK_PARAM_OFFSETS SYNC_STACK
    TEXID_SAMPID_MAP EXTERNS REQNTID FRAME_SIZE MIN_STACK_SIZE SAMPLER_FORCE_UNNORMALIZED
    BINDLESS_IMAGE_OFFSETS BINDLESS_TEXTURE_BANK BINDLESS_SURFACE_BANK KPARAM_INFO SMEM_PARAM_SIZE
    CBANK_PARAM_SIZE QUERY_NUMATTRIB MAXREG_COUNT EXIT_INSTR_OFFSETS S2RCTAID_INSTR_OFFSETS
    CRS_STACK_SIZE NEED_CNP_WRAPPER NEED_CNP_PATCH EXPLICIT_CACHING ISTYPEP_USED MAX_STACK_SIZE
    SUQ_USED LD_CACHEMOD_INSTR_OFFSETS LOAD_CACHE_REQUEST ATOM_SYS_INSTR_OFFSETS
    COOP_GROUP_INSTR_OFFSETS COOP_GROUP_MASK_REGIDS SW1850030_WAR WMMA_USED HAS_PRE_V10_OBJECT
    ATOMF16_EMUL_INSTR_OFFSETS ATOM16_EMUL_INSTR_REG_MAP REGCOUNT SW2393858_WAR
    INT_WARP_WIDE_INSTR_OFFSETS SHARED_SCRATCH STATISTICS INDIRECT_BRANCH_TARGETS SW2861232_WAR
    SW_WAR CUDA_API_VERSION NUM_MBARRIERS MBARRIER_INSTR_OFFSETS COROUTINE_RESUME_ID_OFFSETS
    SAM_REGION_STACK_SIZE PER_REG_TARGET_PERF_STATS CTA_PER_CLUSTER EXPLICIT_CLUSTER
    MAX_CLUSTER_RANK INSTR_REG_MAP RESERVED_SMEM_USED RESERVED_SMEM_0_SIZE UCODE_SECTION_DATA
    UNUSED_LOAD_BYTE_OFFSET KPARAM_INFO_V2 SYSCALL_OFFSETS SW_WAR_MEMBAR_SYS_INSTR_OFFSETS
    GRAPHICS_GLOBAL_CBANK SHADER_TYPE VRC_CTA_INIT_COUNT TOOLS_PATCH_FUNC NUM_BARRIERS
    TEXMODE_INDEPENDENT PERF_STATISTICS AT_ENTRY_FRAGMENTS SPARSE_MMA_MASK TCGEN05_1CTA_USED
    TCGEN05_2CTA_USED GEN_ERRBAR_AT_EXIT REG_RECONFIG ANNOTATIONS - STACK_CANARY_TRAP_OFFSETS
    STUB_FUNCTION_KIND LOCAL_CTA_ASYNC_STORE_OFFSETS MERCURY_FINALIZER_OPTIONS BLOCKS_ARE_CLUSTERS
    SANITIZE SYSCALLS_FALLBACK CUDA_REQ MERCURY_ISA_VERSION - RTCORE_ENTRY
    CLUSTER_LAUNCH_CONTROL_USED - MIN_PER_CTA_MEMORY_SIZE
    IGNOREOOB_CP_ASYNC_BULK_INSTR_OFFSETS LANGUAGE - GRID_ATTRIBUTES STACK_OFFSET
    RT_LIVESTATE_SASS_MAP NVSAL_SW_WAR INSTR_OFFSETS PREEXIT_USED
"""
EIATTR = {number: name for number, name in enumerate(_EIATTR.split()) if name != "-"}

_EICOMPAT = """
    ERROR PAD ISA_CLASS INST_TENSORMAP_V1 INST_TCGEN05_MMA_DEPRECATED INST_TCGEN05_MMA
    ENABLE_OPPORTUNISTIC_FINALIZATION MERCURY_ISA_MAJOR_MINOR_VERSION MERCURY_ISA_PATCH_VERSION
    CUDA_ACCELERATOR_TARGET CUDA_DRIVER_VERSION CAN_FASTPATH_FINALIZE
"""
EICOMPAT = dict(enumerate(_EICOMPAT.split()))
EICOMPAT_NUMBER = {name: number for number, name in EICOMPAT.items()}

EIATTR_NUMBER = {name: number for number, name in EIATTR.items()}

MAX_THREADS, REQNTID = EIATTR_NUMBER["MAX_THREADS"], EIATTR_NUMBER["REQNTID"]
PARAM_CBANK, EXTERNS = EIATTR_NUMBER["PARAM_CBANK"], EIATTR_NUMBER["EXTERNS"]
KPARAM_INFO, CRS_STACK_SIZE = EIATTR_NUMBER["KPARAM_INFO"], EIATTR_NUMBER["CRS_STACK_SIZE"]
REGCOUNT, MERCURY_ISA_VERSION = EIATTR_NUMBER["REGCOUNT"], EIATTR_NUMBER["MERCURY_ISA_VERSION"]
FIRST_ISA_VERSION = 0x100  # 1.0, for code without a record of its MERCURY_ISA_VERSION
# The attribute of .nv.compat with the same version number as MERCURY_ISA_VERSION of .nv.info.
COMPAT_MERCURY_ISA_VERSION = EICOMPAT_NUMBER["MERCURY_ISA_MAJOR_MINOR_VERSION"]
# Attributes of .nv.info whose records hold the symbol of a function and a number.
SYMBOL_PAIRS = frozenset(
    EIATTR_NUMBER[name] for name in ("FRAME_SIZE", "MIN_STACK_SIZE", "MAX_STACK_SIZE", "REGCOUNT")
)
# Attributes of .nv.info that are lists of instructions, by the size of an entry in bytes. An entry
# begins with the offset of an instruction.
_INSTRUCTION_LISTS = {
    4: """
        EXIT_INSTR_OFFSETS S2RCTAID_INSTR_OFFSETS LD_CACHEMOD_INSTR_OFFSETS ATOM_SYS_INSTR_OFFSETS
        COOP_GROUP_INSTR_OFFSETS INT_WARP_WIDE_INSTR_OFFSETS SYSCALL_OFFSETS
        STACK_CANARY_TRAP_OFFSETS LOCAL_CTA_ASYNC_STORE_OFFSETS
        IGNOREOOB_CP_ASYNC_BULK_INSTR_OFFSETS INSTR_OFFSETS
    """,
    8: "ATOM16_EMUL_INSTR_REG_MAP UNUSED_LOAD_BYTE_OFFSET",
    12: "INSTR_REG_MAP",
    16: "MBARRIER_INSTR_OFFSETS",
}


class AttributeFacts:
    """The words (32 bits each) of a record of .nv.info that a link must understand.

    * `words`: the number of words that every record has, or 0 if it may have any number.
    * `of_function`: the first word names the function that the record is about.
    * `symbols`: every word names a symbol, however many there are.
    * `entry`: bytes of an entry of a list of instructions, 0 for other records.
    """

    __slots__ = ("entry", "of_function", "symbols", "words")

    def __init__(
        self,
        word_count: int = 0,
        *,
        of_function: bool = False,
        symbols: bool = False,
        entry: int = 0,
    ) -> None:
        self.words = word_count
        self.entry = entry
        self.of_function = of_function
        self.symbols = symbols


def attribute_facts(number: int) -> AttributeFacts:
    """Return the facts of the attribute of .nv.info with this number.

    All are 0 for an attribute whose words a link need not understand.
    """
    if number in SYMBOL_PAIRS:
        return AttributeFacts(2, of_function=True)
    if number == PARAM_CBANK:
        return AttributeFacts(2)
    if number == CRS_STACK_SIZE:
        return AttributeFacts(1)
    name = EIATTR.get(number)
    entries = (size for size, names in _INSTRUCTION_LISTS.items() if name in names.split())
    return AttributeFacts(symbols=number == EXTERNS, entry=next(entries, 0))


def eiattr_name(number: int) -> str:
    """Return the name of an attribute of .nv.info, or its number."""
    return f"EIATTR_{EIATTR[number]}" if number in EIATTR else f"EIATTR {number:#x}"


def eicompat_name(number: int) -> str:
    """Return the name of an attribute of .nv.compat, or its number."""
    return f"EICOMPAT_ATTR_{EICOMPAT[number]}" if number in EICOMPAT else f"EICOMPAT {number:#x}"
