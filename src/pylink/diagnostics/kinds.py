"""The table of every diagnostic: name -> (number, severity, message template).

Names and numbers are stable: a number is never given to another kind. The hundreds mean:

* 1: command line and files
* 2: input files as a whole
* 3: damaged input
* 4: symbols
* 5: memory and resources
* 7: output of -v, and remarks
* 8: tools and features
* 9: the linker itself

The last two messages of the table, with four digits, have numbers and texts of the EDG front end.

Templates are `str.format` texts over the fields of a record: `file`, `section`, `index`, `offset`,
`symbol`, `where` (the whole place), `at` (place and symbol, after nvlink's texts) and the arguments
of the report. Texts of nvlink stay unchanged to the letter. `help.HELP` has a paragraph on each
kind, which is loaded only to show it.
"""

from __future__ import annotations

from pylink.diagnostics.severity import (
    CATASTROPHE,
    COMMAND_LINE,
    ERROR,
    INTERNAL,
    NOTE,
    REMARK,
    WARNING,
)

# Rows are grouped by topic. Tests check that numbers are unique.
# fmt: off
KINDS: dict[str, tuple[int, int, str]] = {
    # 1xx: command line and files
    #
    # Options and their arguments
    "unknown-option": (101, COMMAND_LINE, "Unknown option '{option}'"),
    "argument-expected": (102, COMMAND_LINE, "argument expected after '{option}'"),
    "no-argument-expected": (103, COMMAND_LINE, "no argument expected after '{option}'"),
    "undefined-value": (104, COMMAND_LINE, "Value '{value}' is not defined for option '{option}'"),
    "boolean-expected": (105, COMMAND_LINE, "'{value}': expected true or false"),
    "number-expected": (112, COMMAND_LINE, "'{value}': expected a number"),
    "integer-range": (114, COMMAND_LINE, "32-bit integer value ({value}) out of range"),
    "invalid-argument": (131, COMMAND_LINE, "Invalid argument for option '{option}'"),
    "invalid-regex": (141, COMMAND_LINE,
        "Invalid regular expression '{value}' passed to -{option}: {reason}"),
    "unknown-diagnostic": (113, COMMAND_LINE,
        "invalid error number in diagnostic control option: {value}"),
    "unknown-remark-format": (140, COMMAND_LINE, "Unknown remark serializer format."),
    "conflicting-options": (106, COMMAND_LINE, "Conflicting options '{option}' and '{other}'"),
    "options-incompatible": (132, REMARK,
        "Incompatible options '{option}' and '{other}', using '{used}'"),
    "option-redefined": (110, WARNING,
        "incompatible redefinition for option '{option}', the last value of this option was used"),
    "option-not-built": (111, COMMAND_LINE,
        "Option '{option}' is not supported by this version of pylink"),
    "host-info-ignored": (119, REMARK,
        "ignore -use-host-info because -kernels-used or -variables-used is specified"),
    "preserve-relocs-partial": (130, WARNING,
        "Option '--preserve-relocs' is not fully implemented for gpu archtecture '{arch}' and "
        "may not work as expected"),

    # Command, target and files to name
    "unknown-command": (135, COMMAND_LINE, "Unknown command '{command}'"),
    "no-output-file": (107, COMMAND_LINE, "Must specify output file with -o option"),
    "no-input-files": (108, COMMAND_LINE,
        "No input files specified; use option --help for more information"),
    "inputs-with-host-script": (128, COMMAND_LINE,
        "Input files are not allowed with -ghls option; use --help for more information"),
    "unknown-arch": (109, COMMAND_LINE, "Unknown arch name '{arch}'"),
    "virtual-target": (117, COMMAND_LINE,
        "Link target of '{arch}' is virtual target that is not JIT-able; use 'sm_' target "
        "instead"),
    "virtual-target-not-built": (118, COMMAND_LINE,
        "Link target '{arch}' is virtual, which this version of pylink does not support; use "
        "'sm_' target instead"),

    # Options files
    "cannot-open-options-file": (123, CATASTROPHE, "Could not open options file '{file}'"),
    "too-many-options-files": (116, COMMAND_LINE, "Too many options file opened '{file}'"),
    "stray-character": (115, COMMAND_LINE, "Stray '{value}' character"),

    # Reading and writing files
    "cannot-open-input": (120, CATASTROPHE, "Could not open input file '{file}'"),
    "cannot-open-output": (121, CATASTROPHE, "Could not open output file '{file}'"),
    "cannot-open-file": (122, CATASTROPHE, "Cannot open file '{file}'"),
    "cannot-read-file": (125, CATASTROPHE, "Reading '{file}' failed: {reason}"),
    "cannot-write-file": (124, CATASTROPHE, "Writing '{file}' failed: {reason}"),
    "output-is-input": (126, CATASTROPHE,
        "Output file '{file}' would overwrite an input ({option}: '{path}')"),
    "output-named-twice": (134, CATASTROPHE,
        "{option} and {other} both write '{file}' ({other} calls it '{path}')"),
    "links-write-one-file": (149, CATASTROPHE,
        "Links for {arch} and {other} both write '{file}' ({option})"),
    "host-script-failed": (129, CATASTROPHE, "Host linker script creation failed."),
    "report-incomplete": (127, WARNING, "Could not append to the timing table '{file}'"),
    "remarks-not-written": (142, ERROR, "Writing remarks to '{file}' failed: {reason}"),
    "no-remarks": (143, REMARK, "No remarks to write; '{file}' is empty"),
    "bad-reproducer": (144, CATASTROPHE, "Cannot reproduce the link in '{file}': {reason}"),

    # Notes on the command line
    "did-you-mean": (136, NOTE, "'{given}': did you mean '{suggestion}'?"),
    "choices-are": (137, NOTE, "{label}: {choices}"),
    "in-options-file": (138, NOTE, "it is in {origin}"),
    "option-of-another": (148, NOTE, "'{given}' is an option of {tool}, not of the device linker"),
    "option-since": (145, NOTE,
        "nvlink has '{option}' since {since}; this link follows {release}"),
    "arch-dropped": (146, NOTE, "{arch} was last supported by CUDA {release}"),
    "arch-renamed": (147, NOTE, "{arch} is called {name} since CUDA 13.0"),

    # 2xx: input files as a whole
    #
    # Formats
    "unknown-input": (221, ERROR,
        "Input file '{file}' is not a cubin, fat binary, host object, archive, PTX or LTO-IR file"),
    "input-kind": (224, CATASTROPHE, "Input file '{file}' is {actual}; expected {expected}"),
    "empty-file": (211, ERROR, "Input file '{file}' is empty"),
    "not-elf": (210, CATASTROPHE, "cubin not an elf?{at}"),
    "wrong-class": (212, ERROR, "Input file '{file}' is not a 64-bit ELF file"),
    "wrong-endian": (213, ERROR, "Input file '{file}' is not little-endian"),
    "wrong-machine": (214, CATASTROPHE, "cubin not a device elf?{at}"),
    "wrong-type": (215, ERROR,
        "Input file '{file}' is not relocatable (ELF type {type}); compile it with -rdc=true or "
        "-dc"),
    "wrong-abi": (216, CATASTROPHE, "Input file '{file}' abi does not match"),
    "wrong-os-abi": (220, WARNING,
        "expected 64bit object '{file}' to have EF_CUDA_64BIT_ADDRESS set"),
    "lto-entry": (222, CATASTROPHE, "LTO objects found, use -dlto{at}"),
    "lto-file": (223, CATASTROPHE, "should only see nvvm files when -lto{at}"),

    # Architectures and releases
    "arch-mismatch": (201, CATASTROPHE, "Input file '{file}' arch does not match target '{arch}'"),
    "accelerated-arch": (225, CATASTROPHE, "cannot link accelerated arch to non-accelerated{at}"),
    "arch-not-found": (203, WARNING, "SM Arch ('{arch}') not found in '{file}'"),
    "no-code-for-arch": (205, ERROR, "No input has code for '{arch}'"),
    "output-limited": (202, WARNING,
        "Output is limited to run on SM Arch '{arch}' only due to limitations in input file "
        "{file}"),
    "isa-class-missing": (219, WARNING,
        "Output is limited to run on SM Arch '{arch}' only, due to missing attribute 'ISA_CLASS' "
        "in input file '{file}'"),
    "virtual-arch-lowered": (217, WARNING,
        "The output reports compute_{lowest} for all kernels, as '{file}'{more} does; '{other}' "
        "was compiled for compute_{highest}"),
    "untimed-code": (226, WARNING,
        "Input file '{file}' was compiled for sm_{sm}: {count} of its FP64 and IMMA instructions "
        "wait longer than necessary on {arch}; compile it for {arch}"),
    "newer-toolkit": (208, CATASTROPHE,
        "Input file '{file}' newer than toolkit ({toolkit} vs {ours})"),
    "unknown-toolkit": (209, WARNING,
        "Input file '{file}' comes from CUDA {compiler}, which this version of pylink does not "
        "know; linking it as CUDA {release}"),
    "toolkit-too-old": (218, CATASTROPHE,
        "Input file '{file}' must be recompiled with toolkit >= Cuda {since}"),

    # Whole programs (-ewp), host code and folding
    "whole-program-old": (261, CATASTROPHE,
        "linking with -ewp objects requires using current toolkit"),
    "whole-program-mixed": (262, WARNING,
        "'{file}': -ewp compiled objects should only link with libcudadevrt"),
    "whole-program-moves": (264, ERROR,
        "{where}: code compiled with -ewp calls this function by its address, which this link "
        "would change; compile it with -rdc=true"),
    "host-differs": (268, WARNING,
        "'{file}'{more} contains host code for {machine}, and the host of this link is {host} "
        "(-cpu-arch); its device code is linked, but the host linker will refuse it"),
    "no-host-code": (227, REMARK,
        "Input '{file}' has no host code, which could cause later host link error if there is a "
        "reference to it"),
    "kernels-removed": (228, WARNING,
        "Kernels removed because no host code names them: {count} (first: '{symbol}'); use "
        "--ignore-host-info to keep all kernels"),
    "not-folded": (206, WARNING, "Mercury sections of '{file}' are not folded: {reason}"),

    # Archives and -l
    "damaged-archive": (230, CATASTROPHE, "{file}: archive is damaged: {reason}"),
    "cannot-read-member": (231, CATASTROPHE,
        "{file}: file '{path}' of the thin archive cannot be read: {reason}"),
    "archive-cycle": (232, CATASTROPHE, "{file}: thin archive contains itself"),
    "archive-limit": (233, CATASTROPHE, "{file}: archive expands to more than {limit} {unit}"),
    "library-skipped": (204, WARNING,
        "Skipping incompatible '{file}' when searching for -l{library}"),
    "library-missing": (207, ERROR,
        "Library -l{library} not found in {directories}; use --allow-missing-libraries to ignore "
        "it"),

    # Shared libraries that were device-linked
    "library-state": (234, WARNING,
        "'{name}' of '{file}' is copied into this image, because '{owner}' was device-linked with "
        "it; neither sees what the other writes to it"),
    "library-managed": (235, ERROR,
        "__managed__ variable '{name}' of '{file}' has no address in this image, because "
        "'{owner}' was device-linked with it"),
    "library-unlisted": (236, WARNING,
        "'{file}' hides '__fatbinwrap{id}', so the driver cannot link the PTX of this image for "
        "GPUs that it has no code for"),
    "library-runtime": (240, WARNING,
        "'{file}' contains its own CUDA runtime, where this program's kernels are not "
        "registered; link '{file}' with -cudart shared"),
    "library-hidden": (241, WARNING,
        "'{file}' exports neither '__fatbinwrap{id}' nor any function, so the host linker may "
        "drop it; link with --no-as-needed"),
    "library-part": (242, WARNING,
        "'{file}' was device-linked with module '{id}', which this link registers, too; kernels "
        "of '{file}' or of this link will not be found (rebuild '{file}' with nvcc -nodlink)"),
    "library-symbolic": (248, WARNING,
        "'{file}' was device-linked with module '{id}', which this link registers, too; kernels "
        "of '{file}' will not be found (link it with -Bsymbolic)"),
    "library-archive": (249, WARNING,
        "'{file}' was device-linked with module '{id}', which this link registers, too; kernels "
        "of this link will not be found (name '{other}' before '{file}', also for the host "
        "linker)"),
    "library-local": (238, WARNING,
        "'{file}' was device-linked with module '{id}', which this link registers, too. If "
        "'{file}' is loaded first, kernels of this link will not be found. Omit '{other}' and "
        "borrow its code, or hide '__cudaRegisterLinkedBinary*' with a version script"),
    "library-unneeded": (239, WARNING,
        "'{file}' was device-linked with module '{id}', which this link registers, too; kernels "
        "of one of them will not be found (omit '{file}' or '{other}')"),
    "library-twice": (243, WARNING,
        "'{other}' and '{file}' were both device-linked with module '{id}'; kernels of one of "
        "them will not be found (rebuild them with nvcc -nodlink)"),
    "library-ids": (244, ERROR,
        "'{file}' has {containers} fat binaries of relocatable code but {ids} module ids"),
    "library-twin": (247, WARNING,
        "'{file}' and '{other}' contain the same module; link only one of them"),

    # Notes on architectures and releases
    "archs-there": (250, NOTE,
        "it has code for {archs}; compile it for the target, or select one of these with -arch "
        "(nvcc defaults to sm_75)"),
    "archs-differ": (251, NOTE, "it was compiled for {archs}; the target is {arch}"),
    "arch-missing": (252, NOTE, "no target given; use -arch, for example -arch=sm_90"),
    "made-by": (263, NOTE,
        "'{file}' was compiled with CUDA {compiler}; this link follows {release}"),
    "made-by-toolkit": (259, NOTE,
        "it was compiled with CUDA {compiler}; compile it with CUDA {since} or a later release"),
    "newest-release": (257, NOTE,
        "it was compiled with CUDA {compiler}; this version of pylink knows releases up to "
        "{release}; to link a newer object, use --nvlink-version"),
    "older-release": (258, NOTE,
        "it was compiled with CUDA {compiler}, newer than --nvlink-version={release}; omit the "
        "option, or compile with CUDA {release}"),
    "older-toolkit": (260, NOTE,
        "it was compiled with CUDA {compiler}, and this toolkit is CUDA {release}; link it with "
        "CUDA {compiler}, or compile with CUDA {release}"),

    # Notes on files
    "file-reason": (253, NOTE, "{reason}"),
    "input-is": (254, NOTE, "it is {format}"),
    "not-an-object": (269, NOTE, "'{file}' is {format}; no device code is found in it"),
    "linked-for-device": (256, NOTE,
        "'{file}' is the output of a device link; link its objects instead"),
    "not-relocatable": (255, NOTE,
        "device code in '{file}' was compiled without -rdc=true (-dc, or CMake's "
        "CUDA_SEPARABLE_COMPILATION), so other files cannot use it"),
    "hidden-by-lto": (267, NOTE,
        "'{file}' contains only bytecode of GCC's -flto, which hides its device code; compile it "
        "without -flto, or with -ffat-lto-objects"),
    "host-machines-differ": (265, NOTE,
        "it contains objects for {machines}; the host of this link is {machine} (-cpu-arch)"),
    "member-ends": (266, NOTE,
        "nvlink ignores '{member}', which is not an object, and all members after it"),
    "library-bare": (237, NOTE,
        "'{file}' has no section headers, so its device code is not found; take the file as it was "
        "linked"),
    "library-linked": (245, NOTE,
        "'{file}' defines '{symbol}', but was device-linked by itself; link its objects, too, or "
        "rebuild it with nvcc -nodlink"),
    "library-owned": (246, NOTE,
        "'{file}' defines '{symbol}', but '{owner}' was device-linked with it, and only one "
        "image can register it; omit '{owner}', or rebuild it with nvcc -nodlink"),

    # 3xx: damaged input; `where` names the file, and the section, entry and offset if known
    #
    # Sections
    "section-table-range": (302, ERROR, "{where}: section header table lies outside the file"),
    "section-range": (303, ERROR, "{where}: section contents lie outside the file"),
    "section-size": (305, ERROR,
        "{where}: size {value} is not a multiple of the entry size {expected}"),
    "section-alignment": (306, ERROR, "{where}: alignment {value} is not a power of two"),
    "section-link": (307, ERROR, "{where}: invalid sh_link {value}"),
    "section-info": (308, ERROR, "{where}: invalid sh_info {value}"),
    "section-name": (329, ERROR, "{where}: this name is not allowed for a section of type {value}"),
    "duplicate-section": (324, ERROR, "{where}: duplicate section"),
    "unknown-section": (325, ERROR, "{where}: section of unknown type {value}"),
    "entry-size": (304, ERROR, "{where}: entry size is {value}, not {expected}"),

    # Strings, symbols and relocations
    "string-offset": (309, ERROR, "{where}: name offset {value} lies outside the string table"),
    "string-unterminated": (310, ERROR, "{where}: string table does not end with a zero byte"),
    "no-symbol-table": (311, ERROR, "{where}: no symbol table"),
    "symbol-section": (312, ERROR, "{where}: symbol is in section {value}, which does not exist"),
    "symbol-range": (313, ERROR, "{where}: symbol lies outside its section"),
    "symbol-kind": (315, ERROR, "{where}: symbol has unknown binding or type {value}"),
    "relocation-type": (316, ERROR, "{where}: unknown relocation type {value}"),
    "relocation-symbol": (317, ERROR,
        "{where}: relocation refers to symbol {value}, which does not exist"),
    "relocation-range": (318, ERROR,
        "{where}: relocated field at offset {value} lies outside its section"),

    # Contents of sections
    "nvinfo-format": (319, ERROR, "{where}: attribute is damaged: {reason}"),
    "callgraph-format": (321, ERROR, "{where}: call graph row is damaged: {reason}"),
    "debug-format": (322, ERROR, "{where}: debug data is damaged: {reason}"),
    "capsule-format": (323, ERROR, "{where}: mercury capsule is damaged: {reason}"),

    # Containers, and all other damage
    "fatbin-format": (326, ERROR, "{where}: fat binary is damaged: {reason}"),
    "fatbin-limit": (328, ERROR, "{where}: fat binary is too large: {reason}"),
    "host-format": (327, ERROR, "{where}: host object is damaged: {reason}"),
    "malformed": (399, ERROR, "{where}: {reason}"),

    # 4xx: symbols
    #
    # References
    "undefined-reference": (401, ERROR, "Undefined reference to '{symbol}' in '{file}'"),
    "image-reference": (419, ERROR,
        "Texture or surface reference '{symbol}' in '{file}' is not supported"),
    "unified-symbols": (424, CATASTROPHE,
        "Unified symbols found but index file not specified."),
    "function-as-variable": (407, CATASTROPHE, "Internal error: no callgraph node{at}"),

    # Definitions that contradict each other
    "multiple-definition": (402, ERROR,
        "Multiple definition of '{symbol}' in '{file}', first defined in '{first}'"),
    "size-mismatch": (403, ERROR,
        "Size doesn't match for '{symbol}' in '{file}', first specified in '{first}'"),
    "space-mismatch": (405, ERROR,
        "Memory space doesn't match for '{symbol}' in '{file}', first specified in '{first}'"),
    "managed-mismatch": (420, ERROR,
        "Managed attribute doesn't match for '{symbol}' in '{file}', first specified in '{first}'"),
    "prototype-mismatch": (406, ERROR,
        "Prototype doesn't match for '{symbol}' in '{file}', first defined in '{first}'"),
    "common-too-large": (421, ERROR,
        "Common symbol '{symbol}' in file '{file}' has larger size than initialization"),
    "merge-failed": (404, CATASTROPHE, "merge_elf failed"),

    # Functions
    "not-global": (408, ERROR, "Function '{name}' not declared __global__ in all source files"),
    "never-called": (422, WARNING,
        "Function '{symbol}' has address taken but no calls to it found"),
    "not-a-patch": (423, CATASTROPHE,
        "Function '{symbol}' in '{file}' is missing EIATTR_TOOLS_PATCH_FUNC attribute required by "
        "{option} option"),

    # Notes: places and differences
    "first-defined-here": (410, NOTE, "{where}: '{symbol}' is first defined here"),
    "first-specified-here": (411, NOTE,
        "{where}: '{symbol}' is first declared with size {size} here"),
    "referenced-here": (412, NOTE, "{where}: '{symbol}' is referenced here"),
    "more-references": (413, NOTE, "{count} more references to '{symbol}'"),
    "inlined-here": (414, NOTE, "'{function}' is inlined here"),
    "defined-here": (415, NOTE, "{where}: '{symbol}' is defined here"),
    "declared-here": (428, NOTE, "{where}: '{symbol}' is declared here"),
    "sizes-differ": (416, NOTE, "it has {size} bytes in '{file}' and {other} bytes in '{first}'"),
    "kernel-or-not": (418, NOTE, "it is {use} in '{file}' and {other} in '{first}'"),
    "prototypes-differ": (427, NOTE,
        "its prototype is {prototype} in '{file}' and {other} in '{first}' (the result comes "
        "first)"),
    "numbered-name": (429, NOTE,
        "the compiler numbers '{symbol}' in the order of declarations; include headers in one "
        "order in all files"),

    # Notes: where else a definition is
    "other-parameters": (417, NOTE, "did you mean '{name}', defined in {place}?"),
    "local-definition": (430, NOTE,
        "'{name}' in {place} is local to that file (static, or in an anonymous namespace)"),
    "in-other-arch": (431, NOTE,
        "'{symbol}' is defined in '{file}', which has code for {archs} and none for {arch}; "
        "compile it for {arch}, too"),
    "in-other-entry": (432, NOTE,
        "'{symbol}' is defined in the code for {archs} of '{file}', but not in the code for "
        "{linked}, which is linked; look for __CUDA_ARCH__ in its source"),
    "in-archived-ptx": (433, NOTE,
        "'{symbol}' is defined in '{file}', but PTX in archives is linked only with "
        "--whole-archive"),
    "in-other-library": (434, NOTE,
        "'{symbol}' is defined in '{file}', but -l{library} finds '{other}'; name the file "
        "itself, or change the order of -L"),
    "in-library": (425, NOTE,
        "'{symbol}' is in {library}; use {option} in this link and in the host link"),
    "in-libdevice": (426, NOTE,
        "'{symbol}' is in libdevice, which the compiler links and a device linker does not; "
        "link libdevice.10.bc where the code is compiled"),
    "library-not-found": (438, NOTE,
        "-l{library} is not found in {directories}; name its directory with -L"),

    # Notes: how to define a symbol once
    "defined-twice": (435, NOTE,
        "define '{symbol}' in one file, or make it static; in a header, declare functions inline "
        "and variables extern"),
    "linked-twice": (436, NOTE, "'{file}' is linked twice; name it once"),
    "same-contents": (437, NOTE,
        "'{file}' and '{first}' have the same contents; link one of them"),

    # 5xx: memory and resources
    #
    # Limits
    "stack-size": (501, WARNING,
        "Stack size for entry function '{symbol}' cannot be statically determined"),
    "too-much-memory": (502, ERROR,
        "Entry function '{symbol}' uses too much {space} data ({size:#x} bytes, {limit:#x} max)"),
    "too-much-file-memory": (503, ERROR,
        "File uses too much global {space} data ({size:#x} bytes, {limit:#x} max)"),
    "too-many-registers": (504, ERROR,
        "entry function '{symbol}' with max regcount of {limit} calls function '{callee}' with "
        "regcount of {registers}"),
    "too-many-literals": (505, ERROR,
        "Entry function '{entry}' uses too much data for compiler-generated constants; please "
        "recompile with -Xptxas --disable-optimizer-constants"),
    "mixed-cta-groups": (506, ERROR,
        "Function '{symbol}' uses single CTA(.cta_group::1) and CTA pair "
        "granularity(.cta_group::2) and that is not allowed."),
    "out-of-memory": (507, CATASTROPHE, "There is not enough memory for the link"),

    # Notes
    "recursion-here": (510, NOTE, "{where}: recursion: '{symbol}' calls '{callee}' here"),
    "indirect-call-here": (511, NOTE, "{where}: recursion: '{symbol}' calls through a pointer"),
    "memory-needed": (512, NOTE, "{size} bytes needed, {limit} available ({over} over the limit)"),
    "memory-share": (513, NOTE, "{where}: '{name}' takes {size} bytes"),
    "memory-rest": (514, NOTE, "{count} others take {size} bytes"),
    "register-chain": (515, NOTE,
        "call chain: {chain}; {cause} limits the kernel to {limit} registers"),

    # 7xx: output of -v, and remarks
    #
    # Output of -v and --dump-callgraph
    "verbose-memory": (701, REMARK, "{sizes}"),
    "verbose-function": (702, REMARK, "Function properties for '{symbol}':"),
    "verbose-usage": (703, REMARK,
        "used {registers} registers, used {barriers} barriers, {stack} stack, {memory}, {lmem} "
        "bytes lmem"),
    "call-graph": (704, REMARK, "{line}"),

    # Remarks of passes
    "pass-remark": (710, REMARK, "{text} [-pass-remarks={pass_name}]"),
    "pass-remark-missed": (711, REMARK, "{text} [-pass-remarks-missed={pass_name}]"),
    "pass-remark-analysis": (712, REMARK, "{text} [-pass-remarks-analysis={pass_name}]"),
    "pass-remark-failure": (713, REMARK, "{text} [-pass-remarks={pass_name}]"),

    # 8xx: tools and features
    #
    # PTX
    "ptxas-missing": (803, CATASTROPHE,
        "PTX in '{file}' needs ptxas, which was not found; install it with \"pip install "
        "'pylink-cuda[cuda]'\" or name it with --ptxas-path"),
    "tool-failed": (802, CATASTROPHE, "'{file}' could not be compiled: {tool} {failure}"),
    "tool-output": (806, REMARK, "{line}"),
    "ptx-line-error": (804, ERROR, "{file}, line {line}: {reason}"),
    "ptx-error": (805, ERROR, "{file}: {reason}"),
    "ptx-file-unused": (807, WARNING,
        "PTX file '{file}' is ignored: PTX files contribute only to links for sm_90 and later, "
        "not for {arch}"),
    "other-compiler": (818, REMARK,
        "PTX in '{file}' is compiled by '{tool}' of CUDA {compiler}, not of {release}; install "
        "ptxas {release} or select it with --ptxas-path"),
    "needs-compiler": (819, CATASTROPHE,
        "'{file}' must be compiled, but this link has no compiler"),

    # Link-time optimization
    "nvvmpath-missing": (801, COMMAND_LINE, "-nvvmpath should be specified with -lto"),
    "nvjitlink-missing": (810, CATASTROPHE,
        'Link-time optimization needs nvJitLink, which was not found; install it with "pip '
        "install 'pylink-cuda[cuda]'\" ({reason})"),
    "lto-failed": (811, CATASTROPHE, "Link-time optimization failed: {reason}"),
    "lto-partial": (812, REMARK,
        "requested LTO but '{file}' not built for LTO so doing partial LTO"),
    "lto-ignored": (813, WARNING, "Ignoring -dlto option because no LTO objects found"),
    "lto-options-differ": (814, CATASTROPHE, "Cicc option values for '{option}' do not match"),
    "lto-line-info": (815, REMARK,
        "Some objects do not have '-lineinfo' specified but others do; will build everything "
        "with '-lineinfo'"),
    "lto-relocatable": (816, CATASTROPHE,
        "Option '-r' cannot be combined with LTO input '{file}'; compile it without -dlto"),
    "lto-slow": (823, REMARK,
        "Link-time optimization took {seconds} s in one thread; --split-compile=N uses N threads"),
    "nothing-linked": (817, WARNING,
        "Link-time optimization produced the whole program; no cubin was linked, so no map is "
        "written"),
    "other-lto-compiler": (821, REMARK,
        "LTO-IR is compiled by nvJitLink of CUDA {compiler}, not of {release}; install nvJitLink "
        "{release} or select a toolkit that has it with -nvvmpath"),
    "compilers-differ": (822, CATASTROPHE,
        "Link-time optimization needs nvJitLink, and ptxas of the same release; found {versions}. "
        "Install one of them in the release of the other: pip install '{package}' or '{other}'"),

    # pylink dlink and nvcc
    "option-for-nvcc": (824, CATASTROPHE,
        "Option '{option}' is left to nvcc, which was not found; put it into PATH, or set "
        "CUDA_HOME to its toolkit"),
    "input-for-nvcc": (825, CATASTROPHE,
        "Input file '{file}' is left to nvcc, which was not found; put it into PATH, or set "
        "CUDA_HOME to its toolkit"),
    "nvcc-not-started": (826, CATASTROPHE, "'{tool}' could not be started: {reason}"),
    "machines-differ": (827, CATASTROPHE,
        "Input file '{file}' is for another machine than '{other}'; link objects of one machine"),

    # Packages, profiles and reports
    "package-missing": (820, CATASTROPHE,
        "Input file '{file}' is compressed with {codec}, which needs the Python package "
        "'{package}': pip install {package}"),
    "profile-problem": (830, WARNING, "The profile is not complete: {reason}"),
    "listing-failed": (831, CATASTROPHE, "Listing sections and rules failed: {reason}"),
    "profile-failed": (832, CATASTROPHE, "Making the profile '{file}' failed: {reason}"),
    "lines-not-read": (890, NOTE,
        "'{file}' has line information; install pylink-cuda[lines] to see source lines"),

    # 84x to 88x: pylink audit
    #
    # Images and modules
    "audit-unanswered": (840, ERROR,
        "{where}: no file registers module '{id}'; '{file}' does not load"),
    "audit-no-code": (841, ERROR,
        "{where}: the image was linked from module '{id}', whose code no file contains; '{file}' "
        "does not load"),
    "audit-incomplete": (842, ERROR,
        "{where}: the image is never registered, as module '{id}' registers with '{other}'; "
        "kernels of {lost} of its modules will not be found"),
    "audit-waiting": (843, ERROR,
        "{where}: the image is never registered, as no file contains module '{id}'; kernels of "
        "{lost} of its modules will not be found"),
    "audit-late": (844, ERROR,
        "{where}: module '{id}' registers too late, as the image of '{other}' is complete; its "
        "kernels will not be found"),
    "audit-incomplete-copy": (845, WARNING,
        "{where}: the image is never registered, as module '{id}' registers with '{other}'; "
        "launches by the copies of its modules in '{file}' fail"),
    "audit-waiting-copy": (846, WARNING,
        "{where}: the image is never registered, as no file contains module '{id}'; launches by "
        "the copies of its modules in '{file}' fail"),
    "audit-late-copy": (847, WARNING,
        "{where}: module '{id}' registers too late, as the image of '{other}' is complete; "
        "launches by its copy in '{file}' fail"),
    "audit-image-unused": (848, NOTE,
        "{where}: the image is not registered and not needed; other files register its modules"),

    # Kernels, variables and architectures
    "audit-kernel": (850, WARNING,
        "{where}: kernel '{symbol}' is also exported by '{other}', with other code; launches in "
        "both files may run either ({count} such kernels)"),
    "audit-kernel-copy": (851, NOTE,
        "{where}: kernel '{symbol}' is also exported by '{other}', with the same code ({count} "
        "such kernels)"),
    "audit-variable": (852, NOTE,
        "{where}: '{other}' has its own copy of variable '{symbol}', like each image ({count} such "
        "variables)"),
    "audit-launcher": (855, WARNING,
        "{where}: function '{symbol}' launches kernel '{kernel}', and is weak and visible: the "
        "copy of another file may run instead, and find other code"),
    "audit-gpu": (853, WARNING, "{where}: no code for sm_{sm}; it has code for {archs}"),
    "audit-relocatable": (854, NOTE,
        "{where}: {size} bytes of relocatable code are for architectures that its images have "
        "code for; no GPU uses them"),

    # Files that are read in part, or not at all
    "audit-damaged": (856, WARNING, "{where}: only partly read: {reason}"),
    "audit-ids": (857, WARNING,
        "{where}: {containers} fat binaries of relocatable code, but {ids} module ids"),
    "audit-no-sections": (858, WARNING,
        "{where}: no section headers; only modules that it exports are known"),
    "audit-skipped": (859, NOTE, "{where}: skipped: {reason}"),
    "audit-elsewhere": (880, NOTE,
        "not read: {libraries}; name their directories with -L, or use --system"),

    # Notes: build steps that help
    "audit-hide": (870, NOTE,
        "link '{file}' with -Wl,--version-script=FILE, where FILE has "
        "'{{ local: __cudaRegisterLinkedBinary*; }};'"),
    "audit-symbolic": (871, NOTE, "link '{file}' with -Wl,-Bsymbolic"),
    "audit-open": (872, NOTE,
        "link '{file}' with nvcc -nodlink (CMake: CUDA_RESOLVE_DEVICE_SYMBOLS OFF), and name it in "
        "the device link of '{other}', by pylink"),
    "audit-contain": (873, NOTE,
        "link the objects of its modules into '{file}', '{id}' as well, and hide "
        "'__cudaRegisterLinkedBinary*' with a version script"),
    "audit-omit": (874, NOTE,
        "omit the device link of '{file}': '{other}' was device-linked with its modules"),
    "audit-once": (875, NOTE, "link module '{id}' into one file only: omit it from '{file}'"),
    "audit-link": (876, NOTE, "name '{file}' in the device link of '{other}', by pylink"),
    "audit-close": (877, NOTE,
        "link '{file}' for the device (nvcc -shared without -nodlink; CMake: "
        "CUDA_RESOLVE_DEVICE_SYMBOLS ON)"),
    "audit-need": (878, NOTE,
        "link '{file}' with -Wl,--no-as-needed and the library that contains the module"),
    "audit-share": (879, NOTE,
        "keep only one copy of module '{id}' in the process: in an open library that a single "
        "device link includes (docs/shared-libraries.md)"),
    "audit-strip": (881, NOTE,
        "run 'pylink prune --linked' on the objects of '{file}' before the host link"),
    "audit-internal": (882, NOTE,
        "declare it static, or hide it: __attribute__((visibility(\"hidden\"))), or "
        "-Xcompiler -fvisibility=hidden for all"),
    "audit-target": (883, NOTE, "compile '{file}' with -gencode arch=compute_{sm},code=sm_{sm}"),
    "audit-object": (885, NOTE,
        "link the object of module '{id}' into '{file}': name its archive before the libraries, "
        "also for the host linker"),
    "audit-borrow": (886, NOTE,
        "name '{other}' in the device link of '{file}', by pylink, which then borrows its code"),
    "audit-lend": (887, NOTE,
        "link '{other}' for the device (nvcc -shared without -nodlink; CMake: "
        "CUDA_RESOLVE_DEVICE_SYMBOLS ON), and name it in the device links of '{file}' and of its "
        "other users, by pylink, which then borrow its code"),
    "audit-hidden-kernels": (884, NOTE,
        "compile both files with -device-entity-has-hidden-visibility=true (CUDA 13's default), "
        "or for the same architectures"),

    # 9xx: the linker itself
    "internal-error": (901, INTERNAL, "{reason}{at}"),

    # Numbers and texts of the EDG front end
    "error-limit": (1508, CATASTROPHE, "Error limit reached."),
    "suppression-hint": (3709, REMARK,
        'The warnings can be suppressed with "-diag-suppress <warning-number>"'),
}
# fmt: on
