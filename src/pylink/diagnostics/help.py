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
    "all options. Long names take two dashes, short names one.",
    "argument-expected": "An option that needs an argument came last. Write the argument next, or "
    "after an equals sign.",
    "no-argument-expected": "A switch was given an argument. Remove the equals sign and what "
    "follows it.",
    "undefined-value": "The option does not accept this argument. `pylink --help` lists the "
    "allowed values.",
    "boolean-expected": "The argument of an option must be the word true or the word false.",
    "conflicting-options": "Two options exclude each other, or one needs another that is missing. "
    "Omit one, or add what is missing.",
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
    "cannot-open-options-file": "An options file is missing or unreadable. Check the name after "
    "`--options-file` or `@`.",
    "cannot-write-file": "Writing the output failed, for the reason that the system gives. Make "
    "room, or name another place; no partial output is left behind.",
    "bad-reproducer": "The archive is incomplete, was not written by --reproduce, or asks for "
    "what is not allowed: files outside of it, links, or arguments for compilers. Pack it again, "
    "with a version of pylink that is not newer than this one.",
    "cannot-read-file": "Reading an input failed after it was opened: a disk or network failed, "
    "or the file was changed meanwhile. Fix the cause and link again.",
    "output-is-input": "The output would replace a file that the link reads: an input, a library, "
    "a file of options, a member of a thin archive or a compiler. Files are compared by what they "
    "are, so a link to the file counts, too. Choose another name; nothing was overwritten.",
    "output-named-twice": "Two options name one file to write, maybe through links, so that one "
    "output would be lost. Choose another name; nothing was written.",
    "links-write-one-file": "A device-link step links once for each architecture, and the last "
    "link would replace what the others wrote. Put `%a` into the name of the file, which stands "
    "for the architecture. Nothing was written.",
    "report-incomplete": "A row or the header of the table of `-time` could not be written. The "
    "disk may be full. The link itself is not affected.",
    "inputs-with-host-script": "A linker script for the host does not depend on inputs. Remove "
    "them from the command line.",
    "host-script-failed": "The host linker `ld` could not be asked for its own script. "
    "`-ghls=lcs-aug` does not need it.",
    "preserve-relocs-partial": "From sm_90 on, the record that `--preserve-relocs` keeps of "
    "resolved relocations is incomplete. Do not rely on it to relocate the output again.",
    "unknown-command": "The first word is neither a command of pylink, nor an option, nor a file. "
    "`pylink help` lists the commands.",
    "did-you-mean": "The existing name that is most like the one given.",
    "arch-dropped": "This release of CUDA has no code for such GPUs. Compile and link with the "
    "release that the note names.",
    "arch-renamed": "CUDA 13.0 gave the architecture another number. Compile and link for that.",
    "option-of-another": "A command line of another tool was given to the device linker. nvcc "
    "takes options of all tools, and hands on to each its own.",
    "choices-are": "The values that are allowed here.",
    "in-options-file": "The options file or environment variable that contains the error.",
    "option-since": "The option is newer than the nvlink release that this link reproduces (see "
    "--nvlink-version). Omit the option, or choose a newer release.",
    "unknown-remark-format": "`--pass-remarks-format` takes `yaml` and `bitstream`.",
    "invalid-regex": "An option that takes a regular expression was given an invalid one. The "
    "syntax is that of Python's `re`. Put a backslash in front of a character such as `(` to "
    "match it literally.",
    "remarks-not-written": "The file of `--pass-remarks-output` could not be written; none is left "
    "behind. The disk may be full. The linked file itself is complete.",
    "no-remarks": "No pass had anything to say that `--pass-remarks-filter` and the threshold let "
    "through. LLVM's tools refuse a file of YAML without remarks.",
    "arch-mismatch": "An input was compiled for an architecture that the target cannot run. "
    "Compile it for the target, or for a lower one of the same major version.",
    "whole-program-old": "An input was compiled with `nvcc -ewp`, as a whole program, and it or a "
    "later input comes from an older toolkit than the linker. nvlink links such programs only "
    "with objects of its own release. Compile all inputs with that release, or select the older "
    "one with `--nvlink-version`.",
    "whole-program-mixed": "A whole program (`nvcc -ewp`) is linked with an input that is neither "
    "such a program nor the device runtime library. Neither can use what the other defines. "
    "Compile both with `-rdc=true`.",
    "whole-program-moves": "From sm_100 on a link may have to change the instructions of a kernel, "
    "for example with `-g`. Code compiled with `nvcc -ewp` has the addresses of its functions in "
    "its instructions, and does not say where: moving them would break it. Compile with "
    "`-rdc=true`.",
    "made-by": "The input that is older than the linker.",
    "accelerated-arch": "An input was compiled for a target with the suffix `a`, such as sm_90a, "
    "and the link is for one without. Since CUDA 13.1 nvlink refuses that: name the target with "
    "the suffix, or compile the input without it.",
    "output-limited": "An input runs on one architecture only, so the output does too. Compile "
    "that input for an architecture without a letter after its number, unless it needs features "
    "of that one.",
    "newer-toolkit": "An input comes from a newer CUDA toolkit than the nvlink that this link "
    "reproduces, which would refuse it. Omit `--nvlink-version`, or compile the input with the "
    "older toolkit.",
    "unknown-toolkit": "An input comes from a CUDA toolkit that is newer than this version of "
    "pylink. This link may ignore parts of it. Install a newer version of pylink, or select the "
    "release to link as with `--nvlink-version`.",
    "newest-release": "The newest toolkit that this version of pylink knows.",
    "older-release": "The release that `--nvlink-version` selects.",
    "older-toolkit": "The release of the toolkit in use.",
    "arch-not-found": "A fat binary or host object has no code for the target. Compile it for the "
    "target as well, or silence this with `-suppress-arch-warning`.",
    "kernels-removed": "All host objects of the link list the kernels that their host code "
    "names, and like nvlink the link removes the others. A program that loads the output, as with "
    "`cuModuleLoadData`, does not find them. Use `--ignore-host-info` to keep all kernels, or "
    "`--kernels-used` to name those to keep (through nvcc: `-Xnvlink --ignore-host-info`). A link "
    "with `--register-link-binaries`, such as that of nvcc, is for programs whose host code "
    "launches by name, and says nothing. nvlink does not either, so in its form this is a note; "
    "`--diag-error=228` makes an error of it, `--diag-suppress=228` drops it.",
    "no-host-code": "A cubin or fat binary is among the objects that host code registers. No host "
    "object brings the functions for it, so a host link that needs them will fail. Compile its "
    "source with nvcc as a host object, or leave the file out of the list.",
    "untimed-code": "The file has code for a chip on which FP64 and integer MMA instructions "
    "take a known number of cycles. The target has no fixed time for them, so each was made to "
    "wait for its result. The program is correct and may be slower. Compile the file for the "
    "target, or with CUDA 13.3 or later. `-Werror` does not make an error of this.",
    "virtual-arch-lowered": "The inputs were compiled for several virtual architectures. The "
    "output has one for all, the lowest, and the driver tells it of each kernel (`ptxVersion` of "
    "`cudaFuncGetAttributes`). Libraries such as CUB choose tuning by it, so kernels of the other "
    "files may run with launch parameters that they were not compiled with. Compile all files for "
    "the same one. nvlink says nothing, so in its form this is a note; `--diag-error=217` makes an "
    "error of it, `--diag-suppress=217` drops it.",
    "library-skipped": "A file with the right name was found for `-l`, but it is not an archive "
    "of objects for the host. The search continues in the next directory. In nvlink's place an "
    "archive without members counts, too.",
    "library-missing": "The library is in no directory of `-L` or LIBRARY_PATH. Common libraries "
    "of the host, such as -lpthread, are ignored, since the host linker finds them itself. Use "
    "`--allow-missing-libraries` to ignore all, as nvlink does.",
    "input-kind": "The `kind` given to `pylink.Input` does not match the contents. Give the right "
    "`kind`, or `any`.",
    "damaged-archive": "An archive breaks its format, or ends too early. Recreate it with `ar`.",
    "cannot-read-member": "A thin archive holds the names of files only, and this one is gone or "
    "was moved. Names are relative to the archive.",
    "archive-cycle": "A thin archive names itself as a member, perhaps through others. Recreate "
    "it without itself.",
    "archive-limit": "An archive refers to other archives or large files so often that this is "
    "likely a mistake. Recreate it from the files.",
    "not-folded": "Copies of Mercury sections can be omitted from the output, but those of this "
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
    "unknown-input": "The contents of an input match no file format that can be linked. The "
    "file's name does not matter.",
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
    "section-alignment": "The alignment of a section is not a power of two.",
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
    "host-machines-differ": "The machines that the objects of an archive are for, and the one that "
    "libraries of the link must match.",
    "member-ends": "nvlink looks at the members of an archive up to the first that is not an ELF "
    "file. Put objects in front, or remove that member from the archive.",
    "not-relocatable": "Without -rdc=true the compiler links each file by itself, and other files "
    "cannot call its device functions.",
    "hidden-by-lto": "GCC with `-flto` writes objects of bytecode alone. The fat binary is part of "
    "that, where only GCC finds it. `-ffat-lto-objects` writes both.",
    "not-an-object": "A library, or a member of an archive, is a file in which neither nvlink nor "
    "pylink finds device code, and nvlink ignores it without a message. Objects that clang made "
    "with `-flto` are bitcode: compile them without.",
    "host-differs": "Device code is the same for all hosts, so the link uses it. The objects of "
    "one program must be for one machine. Look at the cross-compiler that nvcc calls (`-ccbin`, "
    "`-target-dir`), and at the directories of -L.",
    "linked-for-device": "The result of a device link (`nvcc -dlink`) is an image for the driver, "
    "whose functions other files cannot call.",
    "library-state": "Code of a shared library that was device-linked is linked here, too, and "
    "each image has its own copy of the library's variables. The warning is only for variables of "
    "code that stays; those of constant memory that no host code names are the same everywhere. "
    "Pass such state as an argument, or let the library launch the kernels that use it.",
    "library-managed": "Code that this image borrows of a shared library uses a `__managed__` "
    "variable. The runtime tells its address to the image of the library alone. "
    "Pass a pointer to it, or rebuild the library with `nvcc -nodlink`.",
    "library-unlisted": "An image for GPUs that it has no code for is linked by the driver, from "
    "the PTX of all its modules. The program can only hand over a module of another library whose "
    "`__fatbinwrap*` symbol that library exports: compile it without -fvisibility=hidden, or keep "
    "these symbols in its version script.",
    "library-bare": "Device code of a shared library is found by its section headers. Loaders do "
    "not need them, and some tools remove them.",
    "library-runtime": "Kernels are registered with the CUDA runtime that a library has in itself, "
    "and the image with that of the program, so launches fail. One shared runtime serves both: "
    "`nvcc -cudart shared`, or CMAKE_CUDA_RUNTIME_LIBRARY Shared.",
    "library-hidden": "The device code of a shared library is registered by the program, which the "
    "linker of the host does not take for a use of the library. Where the library shows no symbol "
    "that the program could name, say so to that linker.",
    "library-part": "A shared library was device-linked with a module that this link takes from an "
    "archive, too. The loader gives the module's registration to one of the two images, and the "
    "other waits for it in vain. Libraries without a device link leave it to the program.",
    "library-symbolic": "A shared library was device-linked with a module that this link takes "
    "from an object or archive, too. The program's registration comes first, so the library's own "
    "image waits for that module in vain and is never registered. With `-Bsymbolic` each takes "
    "its own.",
    "library-archive": "A shared library registers a module by itself, and this link takes the "
    "module from an archive after the library. The host linker then finds all symbols of the "
    "module in the library and takes nothing from the archive, so nothing registers the module "
    "for the image of this link.",
    "library-local": "This link is for a shared library. A library of its command line registers "
    "one of its modules, too, and comes first where a program or an earlier library loads it. The "
    "module then calls that one, and the image of this link waits in vain. A library that "
    "contains the host code of the module and hides its registration functions does not depend on "
    "the order.",
    "library-unneeded": "A shared library that only holds a device link registers a module of "
    "another library, and this link registers the module, too. Only one of them is called.",
    "library-twice": "Two shared libraries were device-linked with the same module. When the "
    "program starts, one of their images waits for that module in vain and is never registered. "
    "Libraries that contain the module can also be linked with `-Bsymbolic`.",
    "library-twin": "Two files of a program contain the same module, such as a shared library and "
    "an object that it was linked from, and both register it. An archive instead of the object "
    "does no harm after the library: the host linker then takes nothing from it.",
    "library-ids": "A shared library has to have a module id for each fat binary of relocatable "
    "device code. Tools that change sections may have damaged it.",
    "library-linked": "Device code of a shared library that was device-linked is linked again "
    "where it is needed, but not with LTO-IR (`-lto`).",
    "library-owned": "Device code of a shared library that another library was device-linked with "
    "is linked again where it is needed, but not with LTO-IR (`-lto`).",
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
    "kernel-or-not": "What two files take a name for.",
    "unified-symbols": "An input has functions or variables with the PTX attribute `.unified`. An "
    "executable needs an index of them, which pylink cannot read: link without the attribute.",
    "not-a-patch": "With --link-as-tools-patch a link takes only code that tools insert into "
    "kernels. Compile the file with -Xptxas --compile-as-tools-patch, or leave the option out.",
    "first-defined-here": "The place of the first definition of a symbol.",
    "first-specified-here": "The place that first gave the symbol its size; another place gives a "
    "different one.",
    "referenced-here": "A further place that uses a symbol.",
    "more-references": "A symbol is used at more places than are listed.",
    "inlined-here": "The call that code was inlined for.",
    "defined-here": "The place of a definition that another record is about.",
    "sizes-differ": "The sizes that two files give a variable.",
    "in-library": "The name belongs to a library of CUDA or of a package beside it. The library "
    "contains host code as well, so the host link needs it.",
    "in-libdevice": "Functions of libdevice are bitcode. `nvcc` links them while it compiles; who "
    "makes PTX otherwise has to do so, before PTX is made.",
    "prototypes-differ": "The prototypes that two files give a function, as the compiler writes "
    "them: a letter for the registers of the result and of each parameter.",
    "declared-here": "The place of a declaration that another record is about.",
    "numbered-name": "Compilers tell variables of the same name apart by a number after a dollar "
    "sign. Files that include headers in different orders give one name to different variables.",
    "local-definition": "A function of that name is defined, but other files cannot call it. "
    "Remove `static`, or move it out of the anonymous namespace.",
    "in-other-arch": "The fat binary of the file, which may be a member of an archive, has no code "
    "that the target can run, so the link takes nothing of it. Add the target to `-gencode` or "
    "`CMAKE_CUDA_ARCHITECTURES` where the file is compiled, or link for what it has.",
    "in-other-entry": "A fat binary has code for several architectures, and a link takes the one "
    "that suits its target best. The source defines the name for another one only, because of "
    "`#if` on `__CUDA_ARCH__`. Define it for all.",
    "in-archived-ptx": "What PTX defines shows only when it is compiled, so PTX in archives is "
    "compiled only on request.",
    "in-other-library": "The directories of -L have several files for one library, and the first "
    "one counts; a shared library counts before an archive, wherever it is. Name the file that "
    "was meant, or use `-l:FILE`.",
    "defined-twice": "Two files define the same name, as files do that include one header. An "
    "`inline` function may be defined in every file; a variable is defined in one, and `extern` in "
    "the header.",
    "linked-twice": "A file, or an archive with it, is among the inputs twice. The device linker "
    "takes all objects of an archive, whether they are needed or not, so a library that is named "
    "twice clashes with itself.",
    "same-contents": "An object is linked by itself and in an archive, or an archive was copied. "
    "The device linker takes all objects of an archive.",
    "library-not-found": "A device link ignores libraries that are not in the directories of -L, "
    "as most have no device code. This one may have what is undefined.",
    "other-parameters": "A function of the same name is defined with other parameters, in another "
    "namespace, or for other arguments of a template. A declaration may not fit the definition.",
    "never-called": "A function's address is taken, and no kernel of the link calls the function, "
    "by name or through a pointer of its type. It stays in the output. Call it, or remove what "
    "takes its address. Only `--extra-warnings` asks for this.",
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
    "memory-needed": "The bytes needed, and the bytes available.",
    "memory-share": "One variable or function, and how many bytes of the memory it takes.",
    "memory-rest": "The sum of all variables or functions that are not listed.",
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
    "pass-remark": "A pass changed the program; `--pass-remarks` asks for this.",
    "pass-remark-missed": "A pass could not change the program; `--pass-remarks-missed` asks for "
    "the reason.",
    "pass-remark-analysis": "A pass detected something; `--pass-remarks-analysis` asks for this.",
    "pass-remark-failure": "The output is correct, but larger or slower than necessary. Please "
    "report it with the inputs.",
    "nvvmpath-missing": "Link-time optimization needs the directory of libnvvm. Give it with "
    "`-nvvmpath`.",
    "lines-not-read": "Lines are read with the package pyelftools, an extra of pylink. It changes "
    "nothing about the link.",
    "invalid-argument": "The argument of an option is none that the option takes. "
    "`--Ofast-compile` takes 0, min, mid or max; `-maxrregcount` at most three digits.",
    "options-incompatible": "Two options cannot be combined, so only one of them was used.",
    "tool-failed": "A compiler that pylink runs could not be started, failed, was killed, or ran "
    "longer than `--tool-timeout` allows. Its output is shown above.",
    "ptxas-missing": "The link has PTX, which ptxas compiles. It is looked for in the wheel "
    "nvidia-cuda-nvcc, in the toolkits of CUDA_HOME and CUDA_PATH, and in PATH.",
    "needs-compiler": "A link through `pylink.jitlink` found PTX or LTO-IR, and hands such links "
    "to the real nvJitLink. You see this only if you call pylink.jitlink directly.",
    "option-for-nvcc": "`pylink dlink` does what nvcc -dlink does with objects and libraries. "
    "Options that change the result in other ways are handed to the nvcc of a toolkit, with all "
    "other words; docs/device-link.md lists what is done without it.",
    "input-for-nvcc": "`pylink dlink` links objects and libraries. All else is compiled first, "
    "which nvcc does: name the toolkit with --cuda or CUDA_HOME, or compile the file yourself.",
    "nvcc-not-started": "The nvcc that was found could not be started.",
    "machines-differ": "The objects of a device-link step are for two machines of the host, such "
    "as x86-64 and aarch64, and the result can be for one only.",
    "ptx-line-error": "ptxas refused a line of PTX. Entries of fat binaries count their own lines.",
    "ptx-error": "ptxas refused PTX, for a reason that no single line has.",
    "tool-output": "A line that a compiler printed, as it is.",
    "ptx-file-unused": "nvlink compiles a PTX file for a target before sm_90, but does not link "
    "the result. pylink does the same. Compile the file with `ptxas -c`, or put it into a fat "
    "binary.",
    "nvjitlink-missing": "The link has LTO-IR, which nvJitLink compiles. It is taken from the "
    "toolkit of `-nvvmpath`, else from the wheel nvidia-nvjitlink, else from CUDA_HOME.",
    "lto-failed": "nvJitLink refused the LTO-IR of the link, or options for it. It also detects "
    "symbols that are defined twice in LTO-IR.",
    "lto-partial": "With -lto, some input is machine code already, so that functions which it "
    "could call are kept.",
    "lto-ignored": "With -lto, no input has LTO-IR. Compile with `-dlto` or `code=lto_80`.",
    "lto-options-differ": "Inputs with LTO-IR were compiled with different settings of floating "
    "point arithmetic, of which the whole program can have only one. Compile all of them with the "
    "same `-ftz`, `-prec-div`, `-prec-sqrt` and `-fmad`.",
    "lto-line-info": "Inputs with LTO-IR differ in whether they have line information.",
    "nothing-linked": "All inputs contain LTO-IR, and ptxas compiled the output from them. A map "
    "shows what a linker does; to get one, link a cubin as well.",
    "other-compiler": "nvlink compiles PTX with a compiler of its own release. Where none of that "
    "release was found, the code is that of another one. `--nvlink-version`, or the toolkit of an "
    "overlay, says which release is followed.",
    "other-lto-compiler": "nvlink compiles LTO-IR with libraries of its own release. The nvJitLink "
    "that was found is of another, so the code may differ. `pylink-cuda[cuda]` and "
    "`pylink-cuda[cuda12]` install matching sets.",
    "compilers-differ": "nvJitLink compiles LTO-IR to PTX of its own release, which an older ptxas "
    "cannot read. Both are looked for in the toolkit of `-nvvmpath`, the wheels beside this "
    "Python, CUDA_HOME, CUDA_PATH and PATH; `--ptxas-path` names a ptxas. Nothing was compiled.",
    "lto-slow": "nvJitLink compiled the whole program in one thread. With `--split-compile=N` it "
    "uses N threads, with 0 one for each core; the code may then differ from that of one thread.",
    "lto-relocatable": "A relocatable output keeps all functions, and nvJitLink makes whole "
    "programs only. Compile the input that is named without `-dlto`.",
    "profile-problem": "A section or rule file for the report of --profile cannot be used, or a "
    "section asks for a metric that this link does not have. The link and the rest of the report "
    "are not affected; `pylink report --list-sections` and "
    "`--list-rules` show the files and what is wrong with them.",
    "listing-failed": "A folder of `--section-folder` does not exist, or the package protobuf is "
    "missing. Run `pip install 'pylink-cuda[report]'`.",
    "audit-unanswered": "A library with device code that nobody linked is loaded without a program "
    "that links it. The loader finds no registration function: `dlopen` fails, or the process ends "
    "at the first call. Link the program, or the library, for the device.",
    "audit-no-code": "An image refers to the fat binary of a module in another file, and no file "
    "that is loaded has it. Add the library that contains it to the link of the host.",
    "audit-incomplete": "An image is registered when all of its modules have called, and one of "
    "them calls another image. All kernels that the image should have had are lost: launches "
    "return `invalid device function`. The note is a step of the build that was tried in the "
    "simulation and helps.",
    "audit-waiting": "An image waits for a module whose host code is in no file, for example in a "
    "member that the host linker did not take from an archive. Link that object, or omit the "
    "module from the device link.",
    "audit-late": "Some module calls twice, so the image was complete before this one called. Its "
    "kernels are lost, and the call writes past a table. Keep each module in one file.",
    "audit-incomplete-copy": "An image is never registered, but each of its modules is also in a "
    "file where it is registered. Host code that uses those copies works; launches by the copies "
    "here fail.",
    "audit-waiting-copy": "An image waits for a module that is in no file. Its other modules are "
    "also in files where they are registered, so only launches by the copies here fail.",
    "audit-late-copy": "A module calls an image that is complete. Another file has registered the "
    "same module, so only launches by this copy fail; but the call writes past a table.",
    "audit-image-unused": "All modules of an image are registered by other files. The image is "
    "never used, and its bytes could go.",
    "audit-kernel": "Two files export the host symbol of one kernel, and the device code differs. "
    "The loader gives both the address in the first file, so that a launch may run the code of the "
    "other file, or find none for the GPU.",
    "audit-kernel-copy": "Two files export the host symbol of one kernel, with the same code. "
    "Nothing is wrong as long as that stays so.",
    "audit-variable": "Each image has a copy of its `__device__` variables. What the host sets in "
    "one file is not seen by kernels of the other. Whether that is meant, files do not say.",
    "audit-gpu": "No image of the file has machine code for the GPU of `--gpu`, or PTX that the "
    "driver could compile for it. Compile it for that architecture.",
    "audit-relocatable": "Device code before the device link is still in the file. The driver uses "
    "it only on GPUs that the image has no code for. Remove it with `pylink prune --linked`.",
    "audit-launcher": "An inline function or template launches a kernel. If two libraries have it, "
    "the loader uses the first one everywhere, with the kernels and architectures of that library. "
    "Give it internal or hidden visibility.",
    "audit-damaged": "A header or table of the file does not hold: the audit may miss something. "
    "Make the file again.",
    "audit-ids": "Each module has an id and a fat binary, and here their numbers differ. The file "
    "was changed after its link, or is damaged.",
    "audit-no-sections": "Ids of modules and fat binaries are in sections, and the file has no "
    "section headers. Audit the file before they are stripped.",
    "audit-skipped": "A library that was found is not one that the loader could use. It goes on to "
    "the next directory.",
    "audit-hide": "A step that helps: hidden functions answer only the file's own modules.",
    "audit-symbolic": "A step that helps: with -Bsymbolic a library answers its own modules first.",
    "audit-open": "A step that helps: an open library is not linked for the device by itself, and "
    "the program's device link takes its modules.",
    "audit-contain": "A step that helps: an image whose modules are all in its own file depends on "
    "no other.",
    "audit-object": "A step that helps: host linkers take a member of an archive only for what no "
    "library in front of it exports.",
    "audit-omit": "A step that helps: modules that another file links need no second image.",
    "audit-once": "A step that helps: a module that is in one file calls once.",
    "audit-link": "A step that helps: the device link that takes the modules of a library "
    "registers them.",
    "audit-close": "A step that helps: a library with an image of its own needs no program that "
    "links it.",
    "audit-need": "A step that helps: a library that is not needed for symbols stays loaded.",
    "audit-share": "No single step was found that helps. The page on shared libraries says how one "
    "image can serve a whole process.",
    "audit-elsewhere": "Libraries that were not read may contain what is missing. Name their "
    "directories.",
    "audit-strip": "A step that makes the file smaller without a change of what runs.",
    "audit-internal": "A step that helps: each file then uses its own copy of the function.",
    "audit-target": "A step that helps: code for one more architecture.",
    "audit-borrow": "A step that helps: code that is borrowed from a library is not registered a "
    "second time. Each image has its own copy of variables.",
    "audit-lend": "A step that helps: a library that was device-linked lends its code to several "
    "programs and plugins, while an open one belongs to one of them.",
    "audit-hidden-kernels": "A step that helps: each file then registers its own host symbol.",
    "internal-error": "pylink reached a state that should be impossible: a bug. Please report it "
    "with the inputs.",
    "error-limit": "The link stopped after as many errors as `--error-limit` allows.",
    "suppression-hint": "How to silence a warning by its number. Shown once, where numbers are.",
}

# For kinds that say what is damaged; what to do is the same for all of them.
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
