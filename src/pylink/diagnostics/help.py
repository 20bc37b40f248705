"""A paragraph on each kind: first what it says, in one sentence, then what to do about it.

Loaded only by what shows it: the rules of a SARIF document, `--explain` and docs/diagnostics.md.
"""

from __future__ import annotations

from textwrap import fill

from pylink.diagnostics.kinds import KINDS
from pylink.diagnostics.severity import DISCRETIONARY, NAMES

# Columns of an explanation.
WIDTH = 80

HELP: dict[str, str] = {
    "unknown-option": "The command line has an option that does not exist. `pylink --help` lists "
    "all options; of two names the long one has two dashes and the short one has one.",
    "argument-expected": "An option that needs an argument came last. Give it as the next word or "
    "after an equals sign.",
    "no-argument-expected": "An option that is a switch was given an argument. Leave out what "
    "follows the equals sign.",
    "undefined-value": "The argument of an option is not one of those it takes. `pylink --help` "
    "lists them.",
    "boolean-expected": "The argument of an option must be the word true or the word false.",
    "conflicting-options": "Two options exclude each other, or one needs another that is missing. "
    "Leave one out, or add what is missing.",
    "no-output-file": "The link needs a name for its output. Give it with `-o`.",
    "no-input-files": "No input was named. Give cubins, archives or libraries to link. Where a "
    "build may have no objects, `--allow-empty` makes an executable without code.",
    "unknown-arch": "The target architecture is missing or unknown. Give it with `-arch`, as in "
    "`-arch=sm_90a`.",
    "option-redefined": "An option was given twice with different values. The last one counts.",
    "option-not-built": "The option exists in nvlink, but this version of pylink cannot do what it "
    "asks for. It is refused because ignoring it would give another program.",
    "number-expected": "The argument of an option must be a number: decimal, octal with a leading "
    "0, or hexadecimal with 0x.",
    "unknown-diagnostic": "An option that controls diagnostics names one that does not exist. Use "
    "a number or a name of this list.",
    "integer-range": "The argument of an option does not fit a 32-bit integer. Give one from "
    "-2147483648 to 2147483647.",
    "stray-character": "A quote is not closed, or a backslash ends the text. This is about an "
    "options file or an argument that is a list. Close the quote; in an options file write a "
    "backslash twice.",
    "too-many-options-files": "Options files name each other too deeply. Perhaps one names "
    "itself: name each once.",
    "virtual-target": "The target is an architecture for link-time optimization only. Link for an "
    "`sm_` architecture.",
    "virtual-target-not-built": "The target is a virtual architecture. This version of pylink "
    "links only for `sm_` architectures.",
    "host-info-ignored": "Use of host references was asked for together with an explicit list of "
    "kernels or variables. The list counts, the host references do not.",
    "cannot-open-input": "An input file is missing, unreadable or of no known format. Check the "
    "path and what made the file.",
    "cannot-open-output": "The output file cannot be created. Check that its directory exists and "
    "is writable.",
    "cannot-open-file": "A file that an option names cannot be opened. Check its path, and that "
    "of its directory.",
    "cannot-open-options-file": "A file of options is missing or unreadable. Check the name "
    "behind `--options-file` or `@`.",
    "cannot-write-file": "Writing the output failed, for the reason that the system gives. Make "
    "room, or name another place; no partial output is left behind.",
    "bad-reproducer": "The archive is not one that --reproduce wrote, or not whole, or it asks for "
    "what an archive may not: files outside of it, links, or words for compilers. Pack it again, "
    "with a version of pylink that is not newer than this one.",
    "cannot-read-file": "Reading an input failed after it was opened. The reason is the system's: "
    "a disk or a network failed, or the file was changed meanwhile. Link again when that is "
    "mended.",
    "output-is-input": "The output would replace a file that the link reads: an input, a library, "
    "a file of options, a member of a thin archive or a compiler. Files are compared by what they "
    "are, so a link to the file counts, too. Choose another name; nothing was overwritten.",
    "output-named-twice": "Two options name one file to write, maybe through links, so that one "
    "output would be lost. Choose another name; nothing was written.",
    "report-incomplete": "The table of `-time` did not take a row, or its header. The link itself "
    "is not affected; the disk may be full.",
    "inputs-with-host-script": "A linker script for the host is made without looking at any "
    "input. Leave the inputs out.",
    "host-script-failed": "The host linker `ld` could not be asked for its own script. "
    "`-ghls=lcs-aug` does not need it.",
    "preserve-relocs-partial": "From sm_90 on, the record that `--preserve-relocs` keeps of "
    "resolved relocations is incomplete. Do not rely on it to relocate the output again.",
    "unknown-command": "The first word is neither a command of pylink, nor an option, nor a file. "
    "`pylink help` lists the commands.",
    "did-you-mean": "What is most like a name that does not exist.",
    "choices-are": "What may stand where something else was given.",
    "in-options-file": "Names the options file, or the environment variable, that a mistake is in.",
    "unknown-remark-format": "`--pass-remarks-format` takes `yaml` and `bitstream`.",
    "invalid-regex": "An option that takes a regular expression was given none. The syntax is "
    "that of Python's `re`. A backslash makes an ordinary character of one such as `(`.",
    "remarks-not-written": "The file of `--pass-remarks-output` could not be written; none is left "
    "behind. The disk may be full. The linked file itself is complete.",
    "no-remarks": "No pass had anything to say that `--pass-remarks-filter` and the threshold let "
    "through. LLVM's tools refuse a file of YAML without remarks.",
    "arch-mismatch": "An input was compiled for an architecture that the target cannot run. "
    "Compile it for the target, or for a lower one of the same major version.",
    "accelerated-arch": "An input was compiled for a target with the suffix `a`, such as sm_90a, "
    "and the link is for one without. Since CUDA 13.1 nvlink refuses that: name the target with "
    "the suffix, or compile the input without it.",
    "output-limited": "An input runs on one architecture only, so the output does too. Compile "
    "that input for an architecture without a letter behind its number, unless it needs what only "
    "the other has.",
    "newer-toolkit": "An input was made by a newer CUDA toolkit than that whose nvlink is "
    "followed, which would not read it. Leave out `--nvlink-version`, or compile the input with "
    "the older toolkit.",
    "unknown-toolkit": "An input was made by a CUDA toolkit that did not exist when this version "
    "of pylink was made. It may hold what this link leaves out. A newer version of pylink may "
    "know it; `--nvlink-version` says as which release to link.",
    "newest-release": "Which toolkits this version of pylink knows.",
    "older-release": "Which release `--nvlink-version` asks for.",
    "older-toolkit": "Which release the toolkit of the overlay is.",
    "arch-not-found": "A fat binary or host object has no code for the target. Compile it for the "
    "target as well, or silence this with `-suppress-arch-warning`.",
    "virtual-arch-lowered": "The inputs were compiled for several virtual architectures. The "
    "output has one for all, the lowest, and the driver tells it of each kernel (`ptxVersion` of "
    "`cudaFuncGetAttributes`). Libraries such as CUB choose tuning by it, so kernels of the other "
    "files may run with launch parameters that they were not compiled with. Compile all files for "
    "the same one. nvlink says nothing, so in its form this is a note; `--diag-error=217` makes an "
    "error of it, `--diag-suppress=217` drops it.",
    "library-skipped": "A file of the right name was found for `-l`, but it is no archive of host "
    "objects. The search goes on in the next directory.",
    "library-missing": "No directory of `-L` or of LIBRARY_PATH has the library. Libraries of the "
    "host, which it links from its own directories, may be named and are passed over; "
    "`--allow-missing-libraries` passes over all, as nvlink does.",
    "input-kind": "A call said which kind of input this is, and its contents are of another. Give "
    "`pylink.Input` the right `kind`, or `any`.",
    "damaged-archive": "An archive breaks its format, or ends too early. Make it again with `ar`.",
    "cannot-read-member": "A thin archive holds the names of files only, and this one is gone or "
    "was moved. Names are relative to the archive.",
    "archive-cycle": "A thin archive names itself as a member, perhaps through others. Make it "
    "anew without itself.",
    "archive-limit": "An archive names other archives, or large files, so often that it cannot be "
    "meant. Make it anew of the files themselves.",
    "not-folded": "Copies of Mercury sections can be left out of the output, but those of this "
    "file do not stand in the form that compilers write. The file is linked as it is.",
    "not-elf": "An input does not start like an ELF file. Link relocatable cubins, made with "
    "`nvcc -rdc=true -cubin`.",
    "empty-file": "An input has no bytes. The step that makes it probably failed.",
    "wrong-class": "An input is a 32-bit ELF file. CUDA links 64-bit files only. Compile it for a "
    "64-bit host.",
    "wrong-endian": "An input is a big-endian ELF file. Cubins are little-endian.",
    "wrong-machine": "An input is an ELF file for another machine than a CUDA GPU. Link cubins, "
    "or the host objects that nvcc makes with `-dc`.",
    "wrong-type": "An input is a cubin that was already linked, or never meant to be. Make "
    "relocatable device code with `-rdc=true` or `-dc`.",
    "wrong-abi": "An input uses a version of the CUDA binary interface that is not supported. "
    "Compile it with a toolkit that matches.",
    "unknown-input": "An input starts like no file that can be linked. What a file is follows from "
    "its content; its name does not matter.",
    "lto-entry": "An input was compiled for link-time optimization only. Link it with `-dlto`, or "
    "compile it with code for the target too.",
    "lto-file": "A file of LTO-IR can be linked only with `-lto` or `-dlto`.",
    "fatbin-format": "A fat binary, alone or in a host object, is damaged or packed by a newer "
    "compiler. The index is that of its entry. Compile the input again, or install a newer "
    "version of pylink.",
    "fatbin-limit": "The chosen entries of all fat binaries become larger than "
    "`--max-uncompressed-size` allows. The size is what an entry says of itself.",
    "host-format": "A host object is damaged.",
    "package-missing": "Compressed device code is unpacked by a package that is not installed. "
    "Install the package that the message names.",
    "isa-class-missing": "An input does not say which architectures its code can run on, as a "
    "relocatable link of objects of CUDA 12 for sm_90 does not. The output runs on the target.",
    "toolkit-too-old": "An input has code from before its architecture had the conventions that "
    "all later toolkits use. Compile it anew with a toolkit that is not older.",
    "wrong-os-abi": "The ELF header of an input does not say that addresses have 64 bits. An "
    "object of CUDA 12 is linked all the same; after another, an error says why not. The text is "
    "nvlink's.",
    "section-table-range": "The ELF header places the section header table outside the file.",
    "section-range": "A section header places the contents of its section outside the file.",
    "entry-size": "The entries of a table section do not have the size that ELF gives them.",
    "section-size": "A table section does not hold a whole number of entries.",
    "section-alignment": "A section asks for an alignment that is no power of two.",
    "section-link": "The sh_link of a section names no section of the right kind.",
    "section-info": "The sh_info of a section names no section or symbol of the right kind.",
    "string-offset": "A name starts outside its string table.",
    "string-unterminated": "A string table does not end with a zero byte, so its last name has no "
    "end.",
    "no-symbol-table": "An input that needs symbols has no symbol table. It may have been "
    "stripped: link the file as the compiler wrote it.",
    "symbol-section": "A symbol claims to be in a section that the file does not have.",
    "symbol-range": "A symbol's value and size reach outside its section.",
    "symbol-kind": "A symbol has a binding or type that is not known.",
    "relocation-type": "A relocation has a type that is not known for this architecture.",
    "relocation-symbol": "A relocation refers to a symbol that its table does not have.",
    "relocation-range": "A relocation would change bytes outside its section.",
    "nvinfo-format": "A record of a .nv.info section is cut off or has a wrong size.",
    "callgraph-format": "A row of the call graph is cut off or names a symbol that is not there.",
    "debug-format": "Debug data of an input cannot be followed. Without `-g` or `-lineinfo` the "
    "file has none.",
    "capsule-format": "The mercury capsule of a function cannot be followed.",
    "duplicate-section": "An input has two sections where only one is allowed.",
    "unknown-section": "A section has a type that is not known, so it cannot be merged safely.",
    "section-name": "The type and flags of a section say what it is, its name says something else. "
    "What a linker would make of it depends on which it believes, so it is refused. Compilers name "
    "sections by their type: take the object as the compiler wrote it.",
    "malformed": "An input is damaged in a way that has no number of its own.",
    "no-code-for-arch": "All device code of the inputs is for other architectures, so the output "
    "could not run. nvlink writes one without code. Compile the inputs for the target, or link "
    "for one of the architectures that the notes name.",
    "archs-there": "What an input has code for, by the names that -gencode has for it.",
    "archs-differ": "The architecture of an input, and the target.",
    "made-by-toolkit": "The toolkit whose number an input has.",
    "arch-missing": "A link needs the architecture of the GPU that the output is for.",
    "file-reason": "What the system says about a file.",
    "input-is": "What a file seems to be that cannot be linked.",
    "not-relocatable": "Without -rdc=true the compiler links each file by itself, and other files "
    "cannot call its device functions.",
    "linked-for-device": "The result of a device link (`nvcc -dlink`) is an image for the driver, "
    "whose functions other files cannot call.",
    "library-runtime": "Kernels are registered with the CUDA runtime that a library has in itself, "
    "and the image with that of the program, so launches fail. One shared runtime serves both: "
    "`nvcc -cudart shared`, or CMAKE_CUDA_RUNTIME_LIBRARY Shared.",
    "library-hidden": "The device code of a shared library is registered by the program, which the "
    "linker of the host does not take for a use of the library. Where the library shows no symbol "
    "that the program could name, say so to that linker.",
    "library-part": "A shared library was device-linked with a module that this link takes from an "
    "object or archive, too. The program's registration comes first, so the library's own image "
    "waits for that module in vain and is never registered.",
    "library-twice": "Two shared libraries were device-linked with the same module. When the "
    "program starts, one of their images waits for that module in vain and is never registered.",
    "library-twin": "An object and a shared library that was made of it are linked into one "
    "program, where both register the module. An archive instead of the object is no trouble: the "
    "linker of the host leaves its member alone where the library comes first.",
    "library-ids": "A shared library has to have a module id for each fat binary of relocatable "
    "device code. Tools that change sections may have damaged it.",
    "library-linked": "Device code of a shared library that was device-linked cannot be linked "
    "again: it is registered once, with the library's own image.",
    "library-owned": "Device code of a shared library is registered once. Here another library "
    "that was device-linked with it does that.",
    "undefined-reference": "A symbol is used and no input defines it. Add the file or library that "
    "does, check the spelling and the parameter types, or compile the definition with "
    "`-rdc=true`.",
    "image-reference": "PTX declares `.texref`, `.surfref` or `.samplerref`, as code for CUDA 11 "
    "and older does. pylink links textures and surfaces that are passed as objects; link this "
    "program with nvlink.",
    "multiple-definition": "A symbol has two definitions that are not weak. Keep one, or make the "
    "others static, inline or weak.",
    "size-mismatch": "Two files give a variable different sizes. Use one declaration in a common "
    "header.",
    "common-too-large": "PTX has a `.common` variable with more bytes than a definition of it in "
    "another file has. Declare both with one size.",
    "merge-failed": "The inputs do not fit together. The errors before this one say why.",
    "space-mismatch": "Two files disagree on what a name is: a variable of global, constant or "
    "shared memory, or a function. Use one declaration in a common header.",
    "managed-mismatch": "A variable is `__managed__` in one file and not in another, whose code "
    "would take its address for another. Use one declaration in a common header.",
    "prototype-mismatch": "Two files give a function different parameters or results, which then "
    "pass in different registers. Use one declaration in a common header.",
    "function-as-variable": "A function has the name of a variable in an earlier input, and code "
    "calls it. The errors before this one name it. The text is nvlink's.",
    "not-global": "A function is a kernel in one file and none in another. Use one declaration "
    "in a common header; a kernel is launched, not called.",
    "kernel-or-not": "What two files take a function for.",
    "first-defined-here": "The place of the first definition of a symbol.",
    "first-specified-here": "The place that gave a symbol the size that another one differs from.",
    "referenced-here": "A further place that uses a symbol.",
    "more-references": "A symbol is used at more places than are listed.",
    "inlined-here": "The call that code was inlined for.",
    "defined-here": "The place of a definition that another record is about.",
    "sizes-differ": "The sizes that two files give a variable.",
    "other-parameters": "A function of the same name with other parameters is defined. A "
    "declaration may not fit the definition.",
    "stack-size": "The stack a kernel needs is unknown, because its calls are recursive or go "
    "through pointers. Set enough with `cudaDeviceSetLimit(cudaLimitStackSize, ...)`; silence this "
    "with `-suppress-stack-size-warning`.",
    "too-much-memory": "A kernel and what it calls need more of a memory space than there is. The "
    "notes list its variables, the largest first. Ask for memory beyond the limit at launch, as an "
    "`extern __shared__` array, or let variables that are not used together share one.",
    "too-much-file-memory": "The variables of all files need more of a memory space than there is. "
    "The notes list them, the largest first: make some `__device__` instead of `__constant__`.",
    "too-many-literals": "The literals and the tables of `switch` of a kernel and of the functions "
    "that it calls need more of a constant bank than code can address. The notes list them, the "
    "largest first: recompile the files of these functions with `-Xptxas "
    "--disable-optimizer-constants`, or split a large `switch`. Linked regardless, code "
    "would read other constants.",
    "register-chain": "The calls from a kernel to a function that needs more registers than the "
    "kernel may have, and what gave it the limit. Compile the function with a limit as low "
    "(`-maxrregcount`), or the kernel with a higher one.",
    "out-of-memory": "The system gave the process no more memory, of the machine or of its share: "
    "`ulimit -v`, a control group, `--max-memory` of `pylink serve`.",
    "memory-needed": "The bytes that are needed, and how many there are.",
    "memory-share": "One variable or function, and how many bytes of the memory it takes.",
    "memory-rest": "The sum of all that is not listed.",
    "too-many-registers": "A kernel was compiled for fewer registers than a function that it "
    "calls needs. Compile the function with a limit as low (`-maxrregcount`), or the kernel with "
    "a higher one.",
    "mixed-cta-groups": (
        "A kernel whose tcgen05 instructions work for single CTAs reaches a function whose "
        "instructions work for pairs of them, or the other way round. One kernel can do only one "
        "of both: compile them for the same .cta_group."
    ),
    "recursion-here": "A call that leads back to the function which makes it.",
    "indirect-call-here": "A function that calls through a pointer, which can lead back to it.",
    "verbose-memory": "The bytes of global and constant memory that the output needs.",
    "verbose-function": "The head of the properties of a kernel.",
    "verbose-usage": "The registers, barriers, stack and memory that a kernel needs.",
    "call-graph": "A line of the call graph that -dump-callgraph asks for.",
    "pass-remark": "A pass did something that `--pass-remarks` asks to hear of.",
    "pass-remark-missed": "A pass could not do something; `--pass-remarks-missed` asks why.",
    "pass-remark-analysis": "A pass found something out that `--pass-remarks-analysis` asks for.",
    "pass-remark-failure": "A pass failed in something that it should have been able to do. The "
    "output is right, but not what it could be. Please report it with the inputs that cause it.",
    "nvvmpath-missing": "Link-time optimization needs the directory of libnvvm. Give it with "
    "`-nvvmpath`.",
    "lines-not-read": "Lines are read with the package pyelftools, an extra of pylink. It changes "
    "nothing about the link.",
    "invalid-argument": "The argument of an option is none that the option takes. "
    "`--Ofast-compile` takes 0, min, mid or max; `-maxrregcount` at most three digits.",
    "options-incompatible": "Of two options that cannot be combined, one was used.",
    "tool-failed": "A program that pylink started could not be started, failed, was killed, or ran "
    "longer than `--tool-timeout` allows. What it printed stands before.",
    "ptxas-missing": "The link has PTX, which ptxas compiles. It is looked for in the wheel "
    "nvidia-cuda-nvcc, in the toolkits of CUDA_HOME and CUDA_PATH, and in PATH.",
    "needs-compiler": "A link in nvJitLink's place came upon PTX or LTO-IR. `pylink.jitlink` hands "
    "such a link to the real library, so this is seen only by who looks for it.",
    "ptx-line-error": "ptxas refused a line of PTX. Entries of fat binaries count their own lines.",
    "ptx-error": "ptxas refused PTX, for a reason that no single line has.",
    "tool-output": "A line that a compiler printed, as it is.",
    "ptx-file-unused": "nvlink compiles a PTX file for an older target and leaves the result out, "
    "and so does pylink. Compile the file with `ptxas -c`, or put it into a fat binary.",
    "nvjitlink-missing": "The link has LTO-IR, which nvJitLink compiles. It is taken from the "
    "toolkit of `-nvvmpath`, else from the wheel nvidia-nvjitlink, else from CUDA_HOME.",
    "lto-failed": "nvJitLink refused the LTO-IR of the link, or options for it. Symbols that are "
    "defined twice in LTO-IR are found here.",
    "lto-partial": "With -lto, some input is machine code already, so that functions which it "
    "could call are kept.",
    "lto-ignored": "With -lto, no input has LTO-IR. Compile with `-dlto` or `code=lto_80`.",
    "lto-options-differ": "Inputs with LTO-IR were compiled with different settings of floating "
    "point arithmetic, of which the whole program can have only one. Compile all of them with the "
    "same `-ftz`, `-prec-div`, `-prec-sqrt` and `-fmad`.",
    "lto-line-info": "Inputs with LTO-IR differ in whether they have line information.",
    "nothing-linked": "All inputs have LTO-IR, and what ptxas made of them is the output. A map "
    "tells what a linker does; link a cubin with it to have one.",
    "other-compiler": "nvlink compiles PTX with a compiler of its own release. Where none of that "
    "release was found, the code is that of another one. `--nvlink-version`, or the toolkit of an "
    "overlay, says which release is followed.",
    "other-lto-compiler": "nvlink compiles LTO-IR with libraries of its own release. The nvJitLink "
    "that was found is of another, so the code may differ. `pylink-cuda[cuda]` and "
    "`pylink-cuda[cuda12]` install matching sets.",
    "lto-relocatable": "A relocatable output keeps all functions, and nvJitLink makes whole "
    "programs only. Compile the input that is named without `-dlto`.",
    "profile-problem": "A section or rule file for the report of --profile cannot be used, or a "
    "section asks for a metric that this link does not have. The link and the rest of the report "
    "are not affected; `pylink report --list-sections` and "
    "`--list-rules` show the files and what is wrong with them.",
    "listing-failed": "A folder of `--section-folder` does not exist, or the package protobuf is "
    "missing: run `pip install 'pylink-cuda[report]'`.",
    "internal-error": "The linker met a state that it holds to be impossible. Please report it "
    "with the inputs that cause it.",
    "error-limit": "The link stopped after as many errors as `--error-limit` allows.",
    "suppression-hint": "How to silence a warning by its number. Shown once, where numbers are.",
}

# Of kinds that say what is damaged; what to do is the same for all of them.
DAMAGED = "Make the input again; if a compiler wrote it so, please report it with the input."
# Those in between that say what to do themselves.
OWN_ADVICE = ("debug-format", "fatbin-format", "fatbin-limit", "no-symbol-table", "section-name")


def paragraph(kind: str) -> str:
    """All that there is to say of a kind."""
    is_damage = 300 <= KINDS[kind][0] < 400 and kind not in OWN_ADVICE
    return f"{HELP[kind]} {DAMAGED}" if is_damage else HELP[kind]


def explanation(kind: str) -> str:
    """Number, name, severity and message of a kind, and the paragraph on it."""
    number, severity, template = KINDS[kind]
    fixed = "; no option changes that" if severity > DISCRETIONARY else ""
    text = fill(paragraph(kind), WIDTH, break_on_hyphens=False, break_long_words=False)
    return f"{number} {kind}: {NAMES[severity]}{fixed}\n\n    {template}\n\n{text}\n"
