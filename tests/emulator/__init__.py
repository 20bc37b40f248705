"""An interpreter of linked GPU code, for tests: it says what a kernel leaves in memory.

Decoding without running, for whoever looks at code:

    from emulator.load import Loaded
    loaded = Loaded(image, "90a")            # an executable cubin: placed, relocated
    loaded.texts                             # name, start and end of each section of code
    loaded.instructions                      # address -> Instruction
    loaded.kernels, loaded.functions         # name -> address

    from emulator.decode import Decoder
    decoder = Decoder.of("100")
    decoder.learn(codes)                     # many sections, one start of nvdisasm
    decoder.decode(code, address)            # list of Instruction

An `Instruction` has guard, opcode, modifiers and operands, parsed (`operands.py`), the address
that it jumps to (`target()`), and the control bits that say when it issues: `stall`, `yields`,
`write_scoreboard`, `read_scoreboard`, `wait_mask`, `reuse`. Code of relocatable files decodes as
well, with the fields of its relocations as they are.

Running a kernel:

    program = Program(loaded)                # emulator.program
    data = loaded.memory.place(bytes(128))
    grid = Grid(program, "kernel", block=(32, 1, 1), parameters=struct.pack("<QI", data, 7))
    grid.run()                               # emulator.grid
    loaded.memory.read(data, 128), grid.printed, grid.usage

`semantics` has what each opcode does, in tables by subject; `build` hands an instruction's
modifiers and operands to them, and refuses what they do not take. `machine` is the state of
threads, `grid` runs it. Convergence is modelled: lanes that part stay apart until BSYNC or WARPSYNC
joins them.

What it does not show: timing, races and scoreboards, what a driver accepts, the last bits of MUFU.
Memory is in order, asynchronous copies are made at once, a cluster is one block. Tensor and texture
instructions are refused.

Modules: `cubin`, `attributes`, `relocations` and `banks` know formats; `load` and `memory` know
places; `decode` and `operands` know how nvdisasm writes. `errors` has what is raised: Unsupported
for what has no row in a table, Fault for what a GPU would report.
"""
