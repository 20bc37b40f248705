"""The table of all remarks: kind, name, message, arguments, and which bytes the hotness counts.

A message is a template: `{Key}` stands for the argument of that name, the rest is text.
docs/remark-passes.md shows the table.
"""

from __future__ import annotations

from pylink.remarks.record import ANALYSIS, ANALYSIS_ALIASING, FAILURE, MISSED, PASSED, TEXT, Remark

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink._native.remarkstream import Arg

    # File, line and column; 0 for an unknown line or column.
    Place = tuple[str, int, int]
    Value = str | int

# Key of the argument that repeats a remark's Function, so that messages can contain it.
SUBJECT = "Symbol"

# Replaces an empty name, which readers refuse.
UNNAMED = "<unnamed>"


class At:
    """The value of an argument, with its location."""

    __slots__ = ("place", "value")

    def __init__(self, value: Value, place: Place) -> None:
        self.value = value
        self.place = place


class Kind:
    """One row of the table: the remark that the pass `pass_name` calls `name`.

    `kind` is a number such as PASSED, `template` the message. `function` describes the object that
    the field Function names, `hotness` the bytes that the field Hotness counts. `pieces` are the
    parts of the template, each with True for a key and False for text. `keys` has all keys.
    """

    __slots__ = ("function", "hotness", "keys", "kind", "name", "pass_name", "pieces", "template")

    def __init__(
        self, kind: int, pass_name: str, name: str, template: str, *, function: str, hotness: str
    ) -> None:
        self.kind = kind
        self.pass_name = pass_name
        self.name = name
        self.template = template
        self.function = function
        self.hotness = hotness
        pieces = []
        for before in template.split("{"):
            key, brace, text = before.rpartition("}")
            if brace:
                pieces.append((key, True))
            if text:
                pieces.append((text, False))
        self.pieces = tuple(pieces)
        self.keys = tuple(key for key, is_key in pieces if is_key)

    def __call__(self, function: str, place: Place, hotness: int, **values: Value | At) -> Remark:
        """Create a remark on `function`, at `place`, with arguments by key in `values`.

        `hotness` is the number of the bytes that the row's `hotness` describes. KeyError if an
        argument of the template is missing.
        """
        function = function or UNNAMED
        values[SUBJECT] = function
        args: list[Arg] = []
        for piece, is_key in self.pieces:
            if not is_key:
                args.append((TEXT, piece, None, 0, 0))
                continue
            value = values[piece]
            if isinstance(value, At):
                args.append((piece, str(value.value), *value.place))
            else:
                args.append((piece, str(value), None, 0, 0))
        file, line, column = place
        return Remark(
            self.kind,
            self.pass_name,
            self.name,
            function,
            file=file,
            line=line,
            column=column,
            hotness=hotness,
            args=args,
        )


_SYMBOLS = "symbol-resolution"
_DEDUP = "merc-dedup"
_SHARED = "shared-layout"

# The formatter would break each row into many lines.
# fmt: off
COMMON_MERGED = Kind(PASSED, _SYMBOLS, "CommonMerged",
    "common {Symbol} of {Size} bytes merged with that of {Winner}: {Merged} bytes for both",
    function="the variable", hotness="size of the smaller one")
COMMON_REPLACED = Kind(PASSED, _SYMBOLS, "CommonReplaced",
    "common {Symbol} of {Size} bytes replaced by the definition in {Winner}",
    function="the variable", hotness="size of the common symbol")
COMMON_DROPPED = Kind(PASSED, _SYMBOLS, "CommonDropped",
    "common {Symbol} of {Size} bytes dropped for the definition in {Winner}",
    function="the variable", hotness="size of the common symbol")
STRONG_OVER_WEAK = Kind(PASSED, _SYMBOLS, "StrongOverWeak",
    "weak definition of {Symbol} dropped for the strong one in {Winner}", function="the symbol",
    hotness="size of the weak definition")
WEAK_REPLACED = Kind(PASSED, _SYMBOLS, "WeakReplaced",
    "weak copy of {Symbol} with {Registers} registers replaced by that of {Winner}, which needs "
    "{Needed}", function="the function", hotness="code of the copy that is dropped")
WEAK_OUTDATED = Kind(PASSED, _SYMBOLS, "WeakOutdated",
    "weak copy of {Symbol} compiled from PTX for sm_{Virtual} replaced by that of {Winner}, "
    "compiled from PTX for sm_{Newer}", function="the function",
    hotness="code of the copy that is dropped")
WEAK_KEPT = Kind(MISSED, _SYMBOLS, "WeakKept",
    "weak copy of {Symbol} with {Registers} registers dropped: that of {Winner} is kept, which "
    "needs {Needed}", function="the function", hotness="code of the copy that is dropped")
WEAK_VARIABLE_KEPT = Kind(MISSED, _SYMBOLS, "WeakVariableKept",
    "weak definition of {Symbol} dropped: that of {Winner} came first and is kept",
    function="the symbol", hotness="size of the definition that is dropped")
FUNCTION_REMOVED = Kind(PASSED, "dce", "FunctionRemoved",
    "removed {Symbol}, {CodeBytes} bytes of code: {Reason}", function="the function",
    hotness="code removed")
KERNEL_REMOVED = Kind(PASSED, "dce", "KernelRemoved",
    "removed kernel {Symbol}, {CodeBytes} bytes of code: {Reason}", function="the kernel",
    hotness="code removed")
FUNCTION_KEPT = Kind(MISSED, "dce", "FunctionKept",
    "kept {Symbol}, {CodeBytes} bytes of code that no kernel reaches: {Reason}",
    function="the function", hotness="code kept")
FUNCTION_REACHED = Kind(ANALYSIS, "dce", "FunctionReached",
    "kept {Symbol}, which {Root} reaches: {Chain}", function="the function", hotness="code kept")
KERNEL_SHARED = Kind(ANALYSIS, _SHARED, "KernelShared",
    "{Symbol} takes {Size} bytes of shared memory: {VariableBytes} for {Variables} variables, "
    "{Padding} of padding, {Reserved} for the system", function="the kernel",
    hotness="size of its section of shared memory")
VARIABLE_PLACED = Kind(ANALYSIS, _SHARED, "VariablePlaced",
    "in {Symbol}, {Variable} lies at {Offset}: {Size} bytes aligned to {Align}, after {Padding} "
    "bytes of padding", function="the kernel that uses it", hotness="size of the variable")
ARRAY_PLACED = Kind(ANALYSIS, _SHARED, "ArrayPlaced",
    "in {Symbol}, extern array {Array} starts at {Offset}", function="the kernel that uses it",
    hotness="bytes before the array")
VARIABLES_OVERLAID = Kind(ANALYSIS_ALIASING, _SHARED, "VariablesOverlaid",
    "{Symbol} at {Offset} overlaps {Other}: no kernel uses both",
    function="the variable", hotness="bytes that they share")
ARRAYS_ALIAS = Kind(ANALYSIS_ALIASING, _SHARED, "ArraysAlias",
    "in {Symbol}, extern arrays {Array} and {Other} both start at {Offset}",
    function="the kernel that uses both", hotness="bytes before the arrays")
TOO_MUCH_SHARED = Kind(FAILURE, _SHARED, "TooMuchShared",
    "{Symbol} takes {Size} bytes of shared memory, more than the {Limit} that a kernel can have",
    function="the kernel", hotness="size of its section of shared memory")
KERNEL_STACK = Kind(ANALYSIS, "stack-size", "KernelStack",
    "{Symbol} needs {Stack} bytes of stack, {Frame} of its own, {Depth} calls deep: {Chain}",
    function="the kernel", hotness="bytes of stack")
STACK_UNKNOWN = Kind(MISSED, "stack-size", "StackUnknown",
    "{Symbol} needs unbounded stack: {Chain} enters the recursion {Cycle}, which needs {Frame} "
    "bytes per round", function="the kernel", hotness="frames of the functions in the recursion")
KERNEL_RAISED = Kind(ANALYSIS, "regcount", "KernelRaised",
    "{Symbol} raised from {Own} to {Registers} registers by {Callee}: {Chain}",
    function="the kernel", hotness="additional bytes of registers per thread, 4 per register")
TOO_MANY_REGISTERS = Kind(FAILURE, "regcount", "TooManyRegisters",
    "{Symbol} may have {Limit} registers and calls {Callee}, which needs {Registers}",
    function="the kernel", hotness="bytes of registers above the limit, 4 per register")
RELOCATIONS_APPLIED = Kind(PASSED, "relocate", "RelocationsApplied",
    "in {Symbol}, applied relocations of type {Type}: {Applied}",
    function="the output section they patch",
    hotness="bytes of relocation entries that the output does not need")
RELOCATIONS_KEPT = Kind(MISSED, "relocate", "RelocationsKept",
    "for {Symbol}, kept relocations of type {Type} in {Table}: {Kept}",
    function="the output section they patch", hotness="bytes of their entries in the output")
DEBUG_PIECE = Kind(ANALYSIS, "debug", "DebugPiece", "{Bytes} bytes of {Symbol} come from {Origin}",
    function="the output section", hotness="bytes of the input section")
DEBUG_LEFT_OUT = Kind(PASSED, "debug", "DebugLeftOut", "omitted {Symbol}, {Bytes} bytes: {Reason}",
    function="the input section", hotness="bytes of the input section")
DEBUG_SECTION = Kind(ANALYSIS, "debug", "DebugSection",
    "{Symbol} has {OutputBytes} bytes, from {InputBytes} bytes in input sections: {Pieces}",
    function="the output section", hotness="bytes of the output section")
SECTION_FOLDED = Kind(PASSED, _DEDUP, "SectionFolded",
    "folded {Symbol} into {ReferenceSection} of {Reference}: {SectionBytes} bytes omitted",
    function="the omitted section", hotness="bytes of the section")
SECTION_REJECTED = Kind(MISSED, _DEDUP, "SectionRejected",
    "{File} not folded into {Reference}: stage {Stage}, code {Code}: {Difference}",
    function="the first section that differs, or .nv.merc",
    hotness="bytes of all Mercury sections of the file")
NOT_READ = Kind(FAILURE, _DEDUP, "NotRead", "{File} not compared: {Reason}", function=".nv.merc",
    hotness="0")
SCHEDULE_KEPT = Kind(MISSED, "finalize", "ScheduleKept",
    "{File} keeps the schedule of CUDA {Made} in {Functions} functions with instructions that "
    "nvlink {Release} schedules differently", function="the first of these functions",
    hotness="code of these functions")
COST = Kind(ANALYSIS, _DEDUP, "Cost",
    "comparing {Files} files took {Pairs} comparisons: {BytesCompared} bytes read by {MemcmpCalls} "
    "memcmp calls, {TwinProbes} twins probed, {PrefilterHits} found by hash, {FalsePositives} "
    "false positives, {Digests} sections of {DigestBytes} bytes hashed; the output is {BytesSaved} "
    "bytes shorter", function=".nv.merc", hotness="bytes compared")
# fmt: on

KINDS = tuple(value for value in list(globals().values()) if isinstance(value, Kind))
