"""The output of `pylink inspect` for two of the golden cubins."""

from __future__ import annotations

GUARD = """\
tests/golden/75/guard/exec.nvlink.cubin

ELF header
  type             EXEC
  target           sm_75, ABI version 8
  flags            0x6004b04
  section headers  14 at 0x900
  segments         3 at 0xc80
  size             0xd28

Segments
  type     flags  offset  in file  in memory  sections
  PT_PHDR  RX      0xc80     0xa8       0xa8
  PT_LOAD  RX      0x630    0x2d0      0x2d0  .nv.constant0._Z5scalePfPKfi to .text._Z5scalePfPKfi
  PT_LOAD  RX      0xc80     0xa8       0xa8

Sections (W write, A alloc, X code, I info is a section, M mercury)
  nr  type            flags      offset   size  align  link       info  name
   1  STRTAB                       0x40  0x132    0x1     0          0  .shstrtab
   2  STRTAB                      0x172  0x141    0x1     0          0  .strtab
   3  SYMTAB                      0x2b8   0xd8    0x8     2          8  .symtab
   4  PROGBITS                    0x390   0x70    0x1     0          0  .debug_frame
   5  NOTE            0x2000000   0x400  0x148    0x4     0          0  .note.nv.tkinfo
   6  NOTE            0x1000000   0x548   0x20    0x4     5          0  .note.nv.cuinfo
   7  CUDA_INFO                   0x568   0x24    0x4     3          0  .nv.info
   8  CUDA_INFO       I           0x58c   0x64    0x4     3         13  .nv.info._Z5scalePfPKfi
   9  CUDA_CALLGRAPH              0x5f0   0x20    0x4     3          0  .nv.callgraph
  10  CUDA_RELOCINFO              0x610   0x10    0x8     0          0  .nv.rel.action
  11  REL             I           0x620   0x10    0x8     3          4  .rel.debug_frame
  12  PROGBITS        AI          0x630  0x174    0x4     0         13  .nv.constant0._Z5scalePfPKfi
  13  PROGBITS        AX          0x800  0x100   0x80     3  0xa000008  .text._Z5scalePfPKfi

Symbols .symtab
  nr  value   size  binding  type     section  name and what st_other says
   1    0x0    0x0  LOCAL    SECTION           .note.nv.tkinfo
   2    0x0    0x0  LOCAL    SECTION           .note.nv.cuinfo
   3    0x0    0x0  LOCAL    SECTION           .text._Z5scalePfPKfi
   4    0x0    0x0  LOCAL    SECTION           .nv.constant0._Z5scalePfPKfi
   5    0x0    0x0  LOCAL    SECTION           .debug_frame
   6    0x0    0x0  LOCAL    SECTION           .nv.callgraph
   7    0x0    0x0  LOCAL    SECTION           .nv.rel.action
   8    0x0  0x100  GLOBAL   FUNC     .text    _Z5scalePfPKfi  ENTRY

Relocations .rel.debug_frame
  offset  type       symbol and addend
    0x44  R_CUDA_64  _Z5scalePfPKfi

Records .nv.info
  EIATTR_FRAME_SIZE      _Z5scalePfPKfi 0x0
  EIATTR_REGCOUNT        _Z5scalePfPKfi 0xa
  EIATTR_MIN_STACK_SIZE  _Z5scalePfPKfi 0x0

Records .nv.info._Z5scalePfPKfi
  EIATTR_EXIT_INSTR_OFFSETS   0x50 0xc0
  EIATTR_MERCURY_ISA_VERSION  0.0
  EIATTR_MAXREG_COUNT         0xff
  EIATTR_KPARAM_INFO          ordinal 0 offset 0x0 size 0x8
  EIATTR_KPARAM_INFO          ordinal 1 offset 0x8 size 0x8
  EIATTR_KPARAM_INFO          ordinal 2 offset 0x10 size 0x4
  EIATTR_CBANK_PARAM_SIZE     0x14
  EIATTR_PARAM_CBANK          .nv.constant0._Z5scalePfPKfi offset 0x160 size 0x14
  EIATTR_CUDA_API_VERSION     0x82
  EIATTR_SW_WAR               0x1

Note .note.nv.tkinfo: NVIDIA Corp, type 2000
  version       2
  object file
  tool          nvlink
  tool version  Cuda compilation tools, release 13.0, V13.0.88
  tool build    Build cuda_13.0.r13.0/compiler.36424714_0
  options       -arch sm_75

Note .note.nv.tkinfo: NVIDIA Corp, type 2000
  version       2
  object file
  tool          ptxas
  tool version  Cuda compilation tools, release 13.0, V13.0.88
  tool build    Build cuda_13.0.r13.0/compiler.36424714_0
  options       -arch sm_75 -m 64 -c

Note .note.nv.cuinfo: NVIDIA Corp, type 1000
  version  2
  sm       75
  toolkit  13.0

Call graph .nv.callgraph
  block -1, calls
    none
  block -2, address taken, and the prototype
    none
  block -3, calls through a pointer, and the prototype
    none
  block -4, candidates of calls through a pointer
    none
"""

CALLS = """\
tests/golden/100/calls/m0.cubin

Call graph .nv.callgraph
  block -1, calls
    _Z13use_recursionPi -> _Z9fibonaccii
    _Z8use_biasPi -> _Z8add_biasi
    _Z8use_biasPi -> _ZN43_INTERNAL_c90dc053_13_calls_main_cu_weights6helperEi
    _Z4deadi -> _ZN43_INTERNAL_c90dc053_13_calls_main_cu_weights6helperEi
  block -2, address taken, and the prototype
    none
  block -3, calls through a pointer, and the prototype
    none
  block -4, candidates of calls through a pointer
    none

Prototypes .nv.prototype
  prototype  function
  #ii        _Z9fibonaccii
  #ii        _Z8add_biasi
  #ii        _Z4deadi
"""
