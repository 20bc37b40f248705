"""A paragraph on each kind of diagnostic: what its message means, and mostly what to do about it.

Only the rules of a SARIF document, `--explain`, `pylink help` and docs/diagnostics.md load it.
"""

from __future__ import annotations

from textwrap import fill

from pylink.diagnostics.kinds import KINDS
from pylink.diagnostics.severity import DISCRETIONARY, NAMES

# The most columns of a line of an explanation; longer text continues on the next line.
WIDTH = 80

# By the name of the kind: its paragraph.
HELP: dict[str, str] = {
    "unknown-option": "The command line has an option that does not exist. `pylink help link` "
    "lists all options. Of nvlink's options, long names take two dashes, short names one.",
    "argument-expected": "An option that needs an argument came last. Write the argument next, or "
    "after an equals sign.",
    "no-argument-expected": "A switch was given an argument. Remove the equals sign and the text "
    "after it.",
    "undefined-value": "The option does not accept this argument. `pylink help OPTION` "
    "prints the option and its values.",
    "boolean-expected": "The argument of an option must be the word true or the word false.",
    "conflicting-options": "Two options exclude each other, or one needs another that is missing. "
    "Omit one, or add what is missing.",
    "no-output-file": "The link needs a name for its output. Give it with `-o`.",
    "no-input-files": "No input was named. Give cubins, archives or libraries to link. If a build "
    "may have no objects, `--allow-empty` links an executable without code.",
    "unknown-arch": "The target architecture is missing or unknown. Give it with `-arch`, as in "
    "`-arch=sm_90a`.",
    "option-redefined": "An option was given twice with different values. The last one counts.",
    "option-not-built": "The option exists in nvlink, but this version of pylink does not "
    "implement it. It is refused because ignoring it would produce another program.",
    "number-expected": "The argument of an option must be a number: decimal, octal with a leading "
    "0, or hexadecimal with 0x.",
    "unknown-diagnostic": "An option that controls diagnostics names one that does not exist. Use "
    "a number or a name of docs/diagnostics.md.",
    "integer-range": "The argument of an option does not fit a 32-bit integer. Give one from "
    "-2147483648 to 2147483647.",
    "stray-character": "A quote is not closed, or a backslash ends the text, in an options file or "
    "in an argument that is a list. Close the quote; in an options file write a backslash "
    "twice.",
    "too-many-options-files": "Options files include each other more than 200 levels deep, or "
    "there are more than 16,384 of them; perhaps one includes itself. Include each file once.",
    "virtual-target": "The target is an architecture for link-time optimization only. Link for an "
    "`sm_` architecture.",
    "virtual-target-not-built": "The target is a virtual architecture. This version of pylink "
    "links only for `sm_` architectures.",
    "host-info-ignored": "The link was asked to use host references, and also given an explicit "
    "list of kernels or variables. The list counts; the host references are ignored.",
    "cannot-open-input": "An input file is missing, unreadable or of an unknown format. Check the "
    "path and the step that writes the file.",
    "cannot-open-output": "The output file cannot be created. Check that its directory exists and "
    "is writable.",
    "cannot-open-file": "A file that an option names cannot be opened. Check its path, and that "
    "its directory exists.",
    "cannot-open-options-file": "An options file is missing or unreadable. Check the name after "
    "`--options-file` or `@`.",
    "cannot-write-file": "Writing the output failed, for the reason that the system gives. Make "
    "room, or name another place. No partial output remains.",
    "bad-reproducer": "The archive is incomplete, was not written by --reproduce, or contains "
    "something that is not allowed: files outside of it, links, or arguments for compilers. "
    "Pack it again, with a version of pylink that is not newer than this one.",
    "cannot-read-file": "Reading an input failed after it was opened: a disk or network failed, "
    "or the file was changed meanwhile. Fix the cause and link again.",
    "output-is-input": "The output would replace a file that the link reads: an input, a library, "
    "an options file, a member of a thin archive or a compiler. A link to such a file counts, "
    "too. Choose another name; nothing was overwritten.",
    "output-named-twice": "Two options name the same output file, perhaps through links, so that "
    "one output would be lost. Choose another name; nothing was written.",
    "links-write-one-file": "A device-link step links once for each architecture, and the last "
    "link would replace the files of the others. Put `%a`, which stands for the architecture, "
    "into the name of the file. Nothing was written.",
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
    "did-you-mean": "The existing name that is closest to the unknown one. If it is the intended "
    "name, use it.",
    "arch-dropped": "This release of CUDA has no code for such GPUs. Compile and link with the "
    "release that the note names.",
    "arch-renamed": "CUDA 13.0 gave the architecture another number. Compile and link for that "
    "number.",
    "option-of-another": "The command line of another tool was given to the device linker. nvcc "
    "accepts the options of all tools and passes on to each its own.",
    "choices-are": "The values that the option or command accepts. Choose one of them.",
    "in-options-file": "The options file or environment variable that contains the error. Correct "
    "it there.",
    "option-since": "The option is newer than the nvlink release that this link reproduces (see "
    "--nvlink-version). Omit the option, or choose a newer release.",
    "unknown-remark-format": "`--pass-remarks-format` takes `yaml` and `bitstream`.",
    "invalid-regex": "An option that takes a regular expression was given an invalid one. The "
    "syntax is that of Python's `re`. Put a backslash in front of a character such as `(` to "
    "match it literally.",
    "remarks-not-written": "The file of `--pass-remarks-output` could not be written, and no part "
    "of it remains. The disk may be full. The linked file itself is complete.",
    "no-remarks": "No remark matches `--pass-remarks-filter` and reaches the threshold, so the "
    "file is empty. LLVM's tools refuse a YAML file without remarks.",
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
    "made-by": "The release of CUDA that compiled the input, and the release that this link "
    "follows. Compile the input with the latter, or link with the former.",
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
    "newest-release": "The release of CUDA that compiled the input, and the newest that this "
    "version of pylink knows. A newer version of pylink may know it.",
    "older-release": "The release of CUDA that compiled the input, and the older one that "
    "`--nvlink-version` selects.",
    "older-toolkit": "The release of CUDA that compiled the input, and the release of the toolkit "
    "in use.",
    "arch-not-found": "A fat binary or host object has no code for the target. Compile it for the "
    "target, too, or silence this with `-suppress-arch-warning`.",
    "kernels-removed": "All host objects of the link list the kernels that their host code names, "
    "and like nvlink the link removes the others. A program that loads the output with "
    "`cuModuleLoadData`, for example, does not find them. Use `--ignore-host-info` to keep all "
    "kernels, or `--kernels-used` to name those to keep (through nvcc: `-Xnvlink "
    "--ignore-host-info`). A link with `--register-link-binaries`, such as that of nvcc, does "
    "not report this: host code of such programs launches kernels by name. nvlink does not "
    "report it either, so in nvlink's format this is a note; `--diag-error=228` makes it an "
    "error, `--diag-suppress=228` drops it.",
    "no-host-code": "A cubin or fat binary is among the objects that host code registers. No host "
    "object contains its registration functions, so a host link that needs them will fail. "
    "Compile its source with nvcc as a host object, or omit the file from the list.",
    "untimed-code": "The file has code for a chip on which FP64 and integer MMA instructions take "
    "a fixed number of cycles. On the target their time is not fixed, so the link made each "
    "wait for its result. The program is correct and may be slower. Compile the file for the "
    "target, or with CUDA 13.3 or later. `-Werror` does not make this an error.",
    "virtual-arch-lowered": "The inputs were compiled for several virtual architectures. The "
    "output has one for all, the lowest, and the driver reports it for each kernel "
    "(`ptxVersion` of `cudaFuncGetAttributes`). Libraries such as CUB choose launch parameters "
    "by it, so kernels of the other files may run with parameters that they were not compiled "
    "for. Compile all files for the same virtual architecture. nvlink does not report this, so "
    "in nvlink's format this is a note; `--diag-error=217` makes it an error, "
    "`--diag-suppress=217` drops it.",
    "library-skipped": "A file with the right name was found for `-l`, but it is not an archive of "
    "objects for the host. The search continues in the next directory. If pylink runs in "
    "nvlink's place, an archive without members counts as found.",
    "library-missing": "The library is in no directory of `-L` or LIBRARY_PATH. Common libraries "
    "of the host, such as -lpthread, are ignored, since the host linker finds them itself. Use "
    "`--allow-missing-libraries` to ignore all missing libraries, as nvlink does.",
    "input-kind": "The `kind` given to `pylink.Input` does not match the contents. Give the right "
    "`kind`, or `any`.",
    "damaged-archive": "An archive violates its format, or ends too early. Recreate it with `ar`.",
    "cannot-read-member": "A thin archive contains only the names of files, and this file was "
    "removed or moved. Names are relative to the archive.",
    "archive-cycle": "A thin archive names itself as a member, perhaps through others. Recreate "
    "it without itself.",
    "archive-limit": "An archive refers to other archives or large files so often that this is "
    "likely a mistake. Recreate it from the files.",
    "not-folded": "Copies of Mercury sections can be omitted from the output, but the sections of "
    "this file do not have the form that compilers write. The file is linked unchanged.",
    "not-elf": "An input does not start like an ELF file. Link relocatable cubins, compiled with "
    "`nvcc -rdc=true -cubin`.",
    "empty-file": "An input has no bytes. The step that writes it probably failed.",
    "wrong-class": "An input is a 32-bit ELF file. CUDA links 64-bit files only. Compile it for a "
    "64-bit host.",
    "wrong-endian": "An input is a big-endian ELF file. Cubins are little-endian.",
    "wrong-machine": "An input is an ELF file for another machine than a CUDA GPU. Link cubins, or "
    "host objects compiled with `nvcc -dc`.",
    "wrong-type": "An input is a cubin that was already linked, or was compiled without "
    "relocatable device code. Compile it with `-rdc=true` or `-dc`.",
    "wrong-abi": "An input uses a version of the CUDA binary interface that is not supported. "
    "Compile it with a matching toolkit.",
    "unknown-input": "The contents of an input match no file format that can be linked. The name "
    "of the file does not matter.",
    "lto-entry": "An input was compiled for link-time optimization only. Link it with `-dlto`, or "
    "compile it with code for the target too.",
    "lto-file": "A file of LTO-IR can be linked only with `-lto` or `-dlto`.",
    "fatbin-format": "A fat binary, alone or in a host object, is damaged or was written by a "
    "newer compiler. The index is the number of the entry. Compile the input again, or install "
    "a newer version of pylink.",
    "fatbin-limit": "The selected entries of all fat binaries would decompress to more than "
    "`--max-uncompressed-size`. The sizes are those that the entries state. Raise the limit if "
    "the input is trusted.",
    "host-format": "A host object is damaged.",
    "package-missing": "The input contains compressed device code, and the Python package that "
    "decompresses it is not installed. Install the package that the message names.",
    "isa-class-missing": "An input does not state which architectures its code can run on. A "
    "relocatable link of objects of CUDA 12 for sm_90 writes such files. The output runs on the "
    "target only.",
    "toolkit-too-old": "An input has code from before its architecture had the conventions that "
    "all later toolkits use. Recompile it with the toolkit that the message names, or a later "
    "one.",
    "wrong-os-abi": "The ELF header of an input does not state that addresses have 64 bits. An "
    "object of CUDA 12 is linked all the same; for others an error follows. The text is "
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
    "debug-format": "Debug data of an input is damaged. Compile the file without `-g` or "
    "`-lineinfo` to link it without debug data.",
    "capsule-format": "The mercury capsule of a function is damaged.",
    "duplicate-section": "An input has two sections where only one is allowed.",
    "unknown-section": "A section has a type that is not known, so it cannot be merged safely.",
    "section-name": "The type and flags of a section identify one kind, its name another. A linker "
    "could treat it as either, so it is refused. Compilers name sections by their type: link "
    "the object as the compiler wrote it.",
    "malformed": "An input is damaged in a way that has no number of its own.",
    "no-code-for-arch": "All device code of the inputs is for other architectures, so the output "
    "could not run. nvlink writes an output without code. Compile the inputs for the target, or "
    "link for one of the architectures that the notes name.",
    "archs-there": "The architectures for which the input has code, as -gencode names them.",
    "archs-differ": "The architecture that an input was compiled for, and the target. One of them "
    "must change.",
    "made-by-toolkit": "The release of CUDA that compiled the input, and the oldest release whose "
    "code the target accepts.",
    "arch-missing": "The link does not know for which GPU to link. Name its architecture with "
    "`-arch`.",
    "file-reason": "The system's reason why a file cannot be opened.",
    "input-is": "The format that the file's first bytes show. Files of this format cannot be "
    "linked.",
    "host-machines-differ": "The machines of the objects in an archive, and the machine that "
    "libraries of this link must match.",
    "member-ends": "nvlink reads the members of an archive up to the first that is not an ELF "
    "file. Put the objects in front of that member, or remove it from the archive.",
    "not-relocatable": "Without -rdc=true the compiler links each file by itself, and other files "
    "cannot call its device functions. Compile the file with -rdc=true.",
    "hidden-by-lto": "GCC with `-flto` writes objects that contain only bytecode. The fat binary "
    "is part of this bytecode, where only GCC finds it. `-ffat-lto-objects` writes both.",
    "not-an-object": "nvlink ignores a library or a member of an archive without device code, and "
    "does not report it. pylink does not find device code in it either. Objects of clang with "
    "`-flto` are bitcode: compile them without that option.",
    "host-differs": "Device code is the same for all hosts, so the link uses it. The objects of "
    "one program must be for one machine. Look at the cross-compiler that nvcc calls (`-ccbin`, "
    "`-target-dir`), and at the directories of -L.",
    "linked-for-device": "The output of a device link (`nvcc -dlink`) is an image for the driver. "
    "Other files cannot call its functions.",
    "library-state": "This link contains code of a shared library that was device-linked, too, so "
    "each image has its own copy of the library's variables. The warning is only for variables "
    "of code that stays in the output. Variables of constant memory that host code does not "
    "name are the same everywhere. Pass such state as an argument, or let the library launch "
    "the kernels that use it.",
    "library-managed": "Code that this image borrows from a shared library uses a `__managed__` "
    "variable. The runtime sets its address only in the image of the library. Pass a pointer to "
    "it, or rebuild the library with `nvcc -nodlink`.",
    "library-unlisted": "For GPUs that an image has no code for, the driver links it from the PTX "
    "of all its modules. The program can only register a module of another library whose "
    "`__fatbinwrap*` symbol that library exports: compile it without -fvisibility=hidden, or "
    "keep these symbols in its version script.",
    "library-bare": "Device code of a shared library is found by its section headers. Loaders do "
    "not need them, and some tools remove them.",
    "library-runtime": "The library registers its kernels with its own copy of the CUDA runtime, "
    "and the image is registered with the copy of the program, so launches fail. Use one shared "
    "runtime for both: `nvcc -cudart shared`, or CMAKE_CUDA_RUNTIME_LIBRARY Shared.",
    "library-hidden": "The program registers the device code of a shared library, but the host "
    "linker does not count that as a use of the library. The library exports no symbol that the "
    "program could refer to, so tell the host linker to keep it.",
    "library-part": "A shared library was device-linked with a module that this link takes from an "
    "archive, too. The loader gives the module's registration to one of the two images. The "
    "other image waits for a registration that never comes, and its kernels are not found. A "
    "library without a device link leaves the module to the program.",
    "library-symbolic": "A shared library was device-linked with a module that this link takes "
    "from an object or archive, too. The program's registration comes first, so the library's "
    "image waits for a registration that never comes, and its kernels are not found. With "
    "`-Bsymbolic` the library and the program each use their own.",
    "library-archive": "A shared library registers a module by itself, and this link takes the "
    "module from an archive after the library. The host linker then finds all symbols of the "
    "module in the library and takes nothing from the archive, so nothing registers the module "
    "for the image of this link.",
    "library-local": "This link is for a shared library. A library of its command line registers "
    "one of its modules, too, and comes first if a program or an earlier library loads it. The "
    "module then registers with that library, and the image of this link waits for a "
    "registration that never comes. A library that contains the host code of the module and "
    "hides its registration functions does not depend on the order.",
    "library-unneeded": "A shared library that only holds a device link registers a module of "
    "another library, and this link registers the module, too. Only one of them is called.",
    "library-twice": "Two shared libraries were device-linked with the same module. When the "
    "program starts, one of their images waits for a registration that never comes, and its "
    "kernels are not found. Libraries that contain the module can also be linked with "
    "`-Bsymbolic`.",
    "library-twin": "Two files of a program contain the same module, for example a shared library "
    "and an object that it was linked from, and both register it. An archive after the library "
    "is harmless: the host linker takes nothing from it.",
    "library-ids": "A shared library must have a module id for each fat binary of relocatable "
    "device code. A tool that changes sections may have damaged it.",
    "library-linked": "The library was device-linked by itself. pylink links such device code "
    "again if this link needs it, but not for LTO-IR (`-lto`).",
    "library-owned": "Another library was device-linked with this device code. pylink links such "
    "code again if this link needs it, but not for LTO-IR (`-lto`).",
    "undefined-reference": "A symbol is used and no input defines it. Add the file or library that "
    "does, check the spelling and the parameter types, or compile the definition with "
    "`-rdc=true`.",
    "image-reference": "PTX declares `.texref`, `.surfref` or `.samplerref`, like code for CUDA 11 "
    "and older. pylink links only textures and surfaces that are passed as objects. Link this "
    "program with nvlink.",
    "multiple-definition": "A symbol has two definitions that are not weak. Keep one, or make the "
    "others static, inline or weak.",
    "size-mismatch": "Two files give a variable different sizes. Use one declaration in a common "
    "header.",
    "common-too-large": "PTX has a `.common` variable that is larger than its definition in "
    "another file. Declare both with the same size.",
    "merge-failed": "The inputs do not fit together. The errors before this one say why.",
    "space-mismatch": "Two files disagree on what a name is: a variable of global, constant or "
    "shared memory, or a function. Use one declaration in a common header.",
    "managed-mismatch": "A variable is `__managed__` in one file and not in another, whose code "
    "would use a wrong address. Use one declaration in a common header.",
    "prototype-mismatch": "Two files give a function different parameters or results, which then "
    "pass in different registers. Use one declaration in a common header.",
    "function-as-variable": "A function has the name of a variable in an earlier input, and code "
    "calls it. The errors before this one name it. The text is nvlink's.",
    "not-global": "A function is a kernel in one file, but not in another. Use one declaration in "
    "a common header; a kernel is launched, not called.",
    "kernel-or-not": "Says for each of two files what it declares the name as: a kernel or a "
    "function, a variable and its memory space.",
    "unified-symbols": "An input has functions or variables with the PTX attribute `.unified`. An "
    "executable needs an index of them, which pylink cannot read. Link without the attribute.",
    "not-a-patch": "With --link-as-tools-patch a link accepts only code that tools insert into "
    "kernels. Compile the file with -Xptxas --compile-as-tools-patch, or omit the option.",
    "first-defined-here": "The place of the first definition of a symbol.",
    "first-specified-here": "The place that first declared the symbol; it has another size there.",
    "referenced-here": "A further place that uses a symbol.",
    "more-references": "The symbol is used in more places than the notes list.",
    "inlined-here": "The place of the call into which the code was inlined.",
    "defined-here": "The place of the definition that the message above is about.",
    "sizes-differ": "The size that each of two files gives the variable.",
    "in-library": "The name belongs to a library of CUDA or of a package beside it. The library "
    "contains host code, too, so the host link needs it as well.",
    "in-libdevice": "Functions of libdevice are bitcode. `nvcc` links them while it compiles; if "
    "you produce PTX in another way, link libdevice first.",
    "prototypes-differ": "The prototype that each of two files gives the function, in the "
    "compiler's notation: a letter for the registers of the result and of each parameter.",
    "declared-here": "The place of the declaration that the message above is about.",
    "numbered-name": "Compilers distinguish variables of the same name by a number after a dollar "
    "sign. Files that include headers in different orders give the same name to different "
    "variables.",
    "local-definition": "A function of that name is defined, but other files cannot call it. "
    "Remove `static`, or move it out of the anonymous namespace.",
    "in-other-arch": "The fat binary of the file, which may be a member of an archive, has no code "
    "that the target can run, so the link ignores it. Add the target to `-gencode` or "
    "`CMAKE_CUDA_ARCHITECTURES` for this file, or link for an architecture that it has.",
    "in-other-entry": "A fat binary has code for several architectures, and a link uses the code "
    "that fits its target best. The source defines the name only for another architecture, "
    "because of `#if` on `__CUDA_ARCH__`. Define it for all.",
    "in-archived-ptx": "The definitions in PTX are known only after it is compiled. PTX in "
    "archives is compiled only with --whole-archive.",
    "in-other-library": "The directories of -L have several files for one library, and the first "
    "one counts; a shared library counts before an archive, wherever it is. Name the file, or "
    "use `-l:FILE`.",
    "defined-twice": "Two files define the same name, as files do that include one header. An "
    "`inline` function may be defined in every file; a variable is defined in one, and `extern` in "
    "the header.",
    "linked-twice": "An object is among the inputs twice, perhaps once in an archive, and each is "
    "linked, so its definitions conflict. An archive that is named twice counts once.",
    "same-contents": "An object is linked by itself and as a member of an archive, or two archives "
    "have the same members. The device linker takes all objects of an archive.",
    "library-not-found": "A device link ignores libraries that are not in the directories of -L, "
    "as most have no device code. This library may define the symbol.",
    "other-parameters": "A function of the same name is defined with other parameters, in another "
    "namespace, or for other arguments of a template. A declaration may not fit the definition.",
    "never-called": "The address of a function is taken, but no kernel of the link calls the "
    "function, by name or through a pointer of its type. It stays in the output. Call it, or "
    "remove the code that takes its address. Only `--extra-warnings` reports this.",
    "stack-size": "The stack size of a kernel is unknown, because its calls are recursive or go "
    "through pointers. Set a sufficient size with `cudaDeviceSetLimit(cudaLimitStackSize, "
    "...)`; silence this with `-suppress-stack-size-warning`.",
    "too-much-memory": "A kernel and the functions that it calls need more of a memory space than "
    "there is. The notes list its variables, the largest first. Allocate the excess at launch, "
    "as an `extern __shared__` array, or let variables that are not used together share memory.",
    "too-much-file-memory": "The variables of all files need more of a memory space than there is. "
    "The notes list them, the largest first. Declare some as `__device__` instead of "
    "`__constant__`.",
    "too-many-literals": "The literals and `switch` tables of a kernel and of the functions that "
    "it calls need more of a constant bank than code can address. The notes list them, the "
    "largest first. Recompile the files of these functions with `-Xptxas "
    "--disable-optimizer-constants`, or split a large `switch`. If this were linked, code would "
    "read wrong constants.",
    "register-chain": "The chain of calls from the kernel to the function that needs too many "
    "registers, and the option or attribute that limits the kernel. Compile the function with "
    "the same limit (`-maxrregcount`), or the kernel with a higher one.",
    "out-of-memory": "The process got no more memory from the system: the machine has no more, or "
    "a limit applies (`ulimit -v`, a control group, `--max-memory` of `pylink serve`).",
    "memory-needed": "The memory that the variables need, and the memory that is available.",
    "memory-share": "A variable or function, and the number of bytes that it takes.",
    "memory-rest": "The number and the total size of the variables or functions that are not "
    "listed.",
    "too-many-registers": "A kernel was compiled for fewer registers than a function that it calls "
    "needs. Compile the function with the same limit (`-maxrregcount`), or the kernel with a "
    "higher one.",
    "mixed-cta-groups": "A kernel whose tcgen05 instructions work for single CTAs reaches a "
    "function whose instructions work for pairs of CTAs, or the reverse. A kernel can use only "
    "one of them: compile both for the same .cta_group.",
    "recursion-here": "A call that leads back to its own function, so that the depth of the stack "
    "is unknown.",
    "indirect-call-here": "A function that calls through a pointer. The call may lead back to the "
    "function.",
    "verbose-memory": "The bytes of global and constant memory that the output needs.",
    "verbose-function": "The heading of the properties of a kernel.",
    "verbose-usage": "The registers, barriers, stack and memory that a kernel needs.",
    "call-graph": "A line of the call graph, which -dump-callgraph prints.",
    "pass-remark": "A pass changed the program. `--pass-remarks` shows these remarks.",
    "pass-remark-missed": "A pass could not change the program, for the reason that the remark "
    "gives. `--pass-remarks-missed` shows these remarks.",
    "pass-remark-analysis": "A pass detected something. `--pass-remarks-analysis` shows these "
    "remarks.",
    "pass-remark-failure": "The output is correct, but larger or slower than necessary. Please "
    "report it with the inputs.",
    "nvvmpath-missing": "Link-time optimization needs the directory of libnvvm. Give it with "
    "`-nvvmpath`.",
    "lines-not-read": "The optional package pyelftools reads line information. Without it, "
    "messages show no source lines; the link itself is the same.",
    "invalid-argument": "The option does not accept this argument. `--Ofast-compile` takes 0, min, "
    "mid or max; `-maxrregcount` at most three digits.",
    "options-incompatible": "Two options cannot be combined, so only the one that the message "
    "names was used.",
    "tool-failed": "A compiler that pylink runs could not be started, failed, was killed, or ran "
    "longer than `--tool-timeout` allows. Its output is shown above.",
    "ptxas-missing": "The link has PTX, which ptxas compiles. pylink looks for ptxas in the wheel "
    "nvidia-cuda-nvcc, in the toolkits of CUDA_HOME and CUDA_PATH, and in PATH.",
    "needs-compiler": "A link through `pylink.jitlink` has PTX or LTO-IR; nvJitLink's replacement "
    "passes such links to the real nvJitLink. You see this only if you call pylink.jitlink "
    "directly.",
    "option-for-nvcc": "`pylink dlink` does the work of `nvcc -dlink` for objects and libraries. "
    "For other options it starts the nvcc of a toolkit with the same command line; "
    "docs/device-link-options.md lists the supported options.",
    "input-for-nvcc": "`pylink dlink` links objects and libraries. nvcc must first compile all "
    "other files: name the toolkit with --cuda or CUDA_HOME, or compile the file yourself.",
    "nvcc-not-started": "The nvcc that was found could not be started, for the reason that the "
    "system gives.",
    "machines-differ": "The objects of a device-link step are for two host machines, such as "
    "x86-64 and aarch64. The output can be for only one.",
    "ptx-line-error": "ptxas refused a line of PTX. Lines are counted within the PTX of each entry "
    "of a fat binary.",
    "ptx-error": "ptxas refused PTX, for a reason that does not concern a single line.",
    "tool-output": "A line of a compiler's output, unchanged.",
    "ptx-file-unused": "nvlink compiles a PTX file for a target before sm_90, but does not link "
    "the result. pylink does the same. Compile the file with `ptxas -c`, or put it into a fat "
    "binary.",
    "nvjitlink-missing": "The link has LTO-IR, which nvJitLink compiles. pylink looks for "
    "nvJitLink in the toolkit of `-nvvmpath`, then in the wheel nvidia-nvjitlink, then in "
    "CUDA_HOME, CUDA_PATH and /usr/local/cuda, then in the directories of LD_LIBRARY_PATH and of "
    "Debian. Install it, or name a toolkit that has it with `-nvvmpath`.",
    "lto-failed": "nvJitLink refused the LTO-IR of the link, or options for it. It also detects "
    "symbols that are defined twice in LTO-IR.",
    "lto-partial": "With -lto, some inputs are machine code. Functions that they could call are "
    "kept.",
    "lto-ignored": "With -lto, no input has LTO-IR. Compile with `-dlto` or `code=lto_80`.",
    "lto-options-differ": "Inputs with LTO-IR were compiled with different settings of floating "
    "point arithmetic, of which the whole program can have only one. Compile all of them with the "
    "same `-ftz`, `-prec-div`, `-prec-sqrt` and `-fmad`.",
    "lto-line-info": "Some inputs with LTO-IR have line information, others do not. The output has "
    "line information.",
    "nothing-linked": "All inputs contain LTO-IR, and ptxas compiled the output from them. A map "
    "describes the work of a linker; to get one, also link a cubin.",
    "other-compiler": "nvlink compiles PTX with a compiler of its own release. No compiler of that "
    "release was found, so the code may differ. `--nvlink-version`, or the toolkit of an "
    "overlay, sets the followed release.",
    "other-lto-compiler": "nvlink compiles LTO-IR with libraries of its own release. The nvJitLink "
    "that was found is of another release, so the code may differ. `pylink-cuda[cuda]` and "
    "`pylink-cuda[cuda12]` install matching sets.",
    "compilers-differ": "nvJitLink compiles LTO-IR to PTX of its own release, which an older ptxas "
    "cannot read. pylink looks for nvJitLink in the places that the explanation of 810 names, and "
    "for ptxas in those of 803, then in the toolkit of `-nvvmpath`. `--ptxas-path` names a ptxas. "
    "Nothing was compiled.",
    "lto-slow": "nvJitLink compiled the whole program in one thread. With `--split-compile=N` it "
    "uses N threads, with 0 one for each core; the code may then differ from that of one thread.",
    "lto-relocatable": "A relocatable output keeps all functions, but nvJitLink only compiles "
    "whole programs. Compile the input that is named without `-dlto`.",
    "profile-problem": "A section or rule file for the report of --profile cannot be used, or a "
    "section needs a metric that this link does not have. The link and the rest of the report "
    "are not affected. `pylink report --list-sections` and `--list-rules` show the files and "
    "their errors.",
    "listing-failed": "A directory of `--section-folder` does not exist, or the package protobuf "
    "is missing. Run `pip install 'pylink-cuda[report]'`.",
    "profile-failed": "A package for reports is missing, or `--section`, `--set`, `--rule` or "
    "`--metrics` names something that does not exist. `pip install 'pylink-cuda[report]'` installs "
    "the packages; `pylink report --list-sections` and `--list-rules` show the names.",
    "audit-unanswered": "A library with device code that was not device-linked is loaded without a "
    "program that links it. The loader does not find its registration function: `dlopen` fails, "
    "or the process ends at the first call. Link the program, or the library, for the device.",
    "audit-no-code": "An image refers to the fat binary of a module in another file, and no loaded "
    "file contains it. Add the library that contains it to the host link.",
    "audit-incomplete": "An image is registered after all of its modules have called it, and one "
    "of them calls another image. The kernels of all its modules are lost: launches return "
    "`invalid device function`. The note is a build step that was tried in the simulation and "
    "repairs this.",
    "audit-waiting": "An image waits for a module whose host code is in no file, for example in a "
    "member that the host linker did not take from an archive. Link that object, or omit the "
    "module from the device link.",
    "audit-late": "Some module calls twice, so the image was complete before this module called. "
    "Its kernels are lost, and the call writes past the end of a table. Keep each module in one "
    "file.",
    "audit-incomplete-copy": "An image is never registered, but each of its modules is also in a "
    "file where it is registered. Host code that uses those copies works; launches by the copies "
    "here fail.",
    "audit-waiting-copy": "An image waits for a module that is in no file. Its other modules are "
    "also in files where they are registered, so only launches by the copies here fail.",
    "audit-late-copy": "A module calls an image that is complete. Another file has registered the "
    "same module, so only launches by this copy fail; but the call writes past the end of a "
    "table.",
    "audit-image-unused": "Other files register all modules of an image. The image is never used; "
    "omit it to save its bytes.",
    "audit-kernel": "Two files export the host symbol of one kernel, and the device code differs. "
    "The loader uses the address in the first file for both. So a launch may run the code of "
    "the other file, or fail because that has no code for the GPU.",
    "audit-kernel-copy": "Two files export the host symbol of one kernel, with the same code. "
    "Launches work as long as the code stays the same.",
    "audit-variable": "Each image has a copy of its `__device__` variables. Kernels of one file do "
    "not see the value that host code sets in the other. Check whether that is intended.",
    "audit-gpu": "No image of the file has machine code for the GPU of `--gpu`, or PTX that the "
    "driver could compile for it. Compile it for that architecture.",
    "audit-relocatable": "The file still has device code from before the device link. The driver "
    "uses it only on GPUs that the image has no code for. Remove it with `pylink prune "
    "--linked`.",
    "audit-launcher": "An inline function or template launches a kernel. If two libraries have it, "
    "the loader uses the first one everywhere, with the kernels and architectures of that library. "
    "Give it internal or hidden visibility.",
    "audit-damaged": "A header or table of the file is damaged, so the audit may miss something. "
    "Build the file again.",
    "audit-ids": "Each module has an id and a fat binary, and here their numbers differ. The file "
    "was changed after its link, or is damaged.",
    "audit-no-sections": "Ids of modules and fat binaries are in sections, and the file has no "
    "section headers. Audit the file before they are stripped.",
    "audit-skipped": "The loader cannot use this library. It continues with the next directory.",
    "audit-hide": "This step helps because hidden registration functions answer only the file's "
    "own modules.",
    "audit-symbolic": "This step helps because with -Bsymbolic the modules of a library register "
    "with its own image first.",
    "audit-open": "This step helps because the program's device link then includes the modules of "
    "the library. The library itself must not be device-linked.",
    "audit-contain": "This step helps because an image whose modules are all in its own file does "
    "not depend on other files.",
    "audit-object": "This step helps because a host linker takes a member of an archive only for "
    "symbols that no earlier library exports.",
    "audit-omit": "This step helps because modules that another file links do not need a second "
    "image.",
    "audit-once": "This step helps because a module that is in a single file calls only once.",
    "audit-link": "This step helps because the device link that includes the modules of a library "
    "also registers them.",
    "audit-close": "This step helps because a library with its own image does not need a program "
    "that links it.",
    "audit-need": "This step helps because with --no-as-needed the host linker keeps a library "
    "that no symbol refers to.",
    "audit-share": "No single step helps. docs/shared-libraries.md explains how one image can "
    "serve a whole process.",
    "audit-elsewhere": "Libraries that were not read may contain the missing module. Name their "
    "directories.",
    "audit-strip": "A step that makes the file smaller and does not change the program.",
    "audit-internal": "This step helps because each file then uses its own copy of the function.",
    "audit-target": "The file has no code for this GPU. Compile it for one more architecture.",
    "audit-borrow": "This step helps because code that is borrowed from a library is not "
    "registered a second time. Each image has its own copy of variables.",
    "audit-lend": "This step helps because a library that was device-linked lends its code to "
    "several programs and plugins, while an open library belongs to one of them.",
    "audit-hidden-kernels": "This step helps because each file then registers its own host symbol.",
    "internal-error": "pylink reached a state that should be impossible: a bug. Please report it "
    "with the inputs.",
    "error-limit": "The link stopped after the number of errors that `--error-limit` allows.",
    "suppression-hint": "Explains how to silence a warning by its number. It is shown once, in "
    "formats that show numbers.",
}

# Advice that `paragraph` appends for kinds about damaged inputs, which have the numbers 300 to 399.
DAMAGED = (
    "Build the input again; if a compiler wrote it like this, please report it with the input."
)
# Kinds with numbers from 300 to 399 whose HELP already ends with other advice.
OWN_ADVICE = ("debug-format", "fatbin-format", "fatbin-limit", "no-symbol-table", "section-name")


def paragraph(kind: str) -> str:
    """Return the text that explains a kind of diagnostic, with advice if it is about damage."""
    is_damage = 300 <= KINDS[kind][0] < 400 and kind not in OWN_ADVICE
    return f"{HELP[kind]} {DAMAGED}" if is_damage else HELP[kind]


def explanation(kind: str) -> str:
    """Return the number, name, severity, message and explanation of a kind of diagnostic."""
    number, severity, template = KINDS[kind]
    fixed = "; no option changes that" if severity > DISCRETIONARY else ""
    text = fill(paragraph(kind), WIDTH, break_on_hyphens=False, break_long_words=False)
    return f"{number} {kind}: {NAMES[severity]}{fixed}\n\n    {template}\n\n{text}\n"
