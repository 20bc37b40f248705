"""Program features that only PTX can express: weak and common symbols, file-scope shared memory."""

from __future__ import annotations

from helpers.programs_draft import Draft, Feature, Module

HEADER = ".version 7.0\n.target sm_75\n.address_size 64\n"


def _kernel(draft: Draft, body: str, declarations: str = "") -> str:
    """Return the text of a kernel with a body, and declarations in front."""
    name = draft.name("pk")
    draft.kernels.append(name)
    return (
        f"{declarations}\n.visible .entry {name}(.param .u64 out)\n{{\n"
        "  .reg .b32 %r<16>;\n  .reg .b64 %rd<16>;\n"
        "  ld.param.u64 %rd1, [out];\n  cvta.to.global.u64 %rd2, %rd1;\n"
        f"{body}  ret;\n}}\n"
    )


def _add(draft: Draft, text: str) -> None:
    """Add a PTX file with this text."""
    draft.ptx.append(Module(f"p{len(draft.ptx)}.ptx", HEADER + text))


def weak_function(draft: Draft) -> None:
    """Add a .weak function in two or three files whose bodies need different register counts."""
    name = draft.name("wf")
    strong = draft.rng.choice((None, None, None, 0, 1))
    for copy in range(draft.rng.randint(2, 3)):
        steps = draft.rng.choice((1, 4, 30, 60))
        body = "".join(f"  ld.volatile.global.u32 %v{i}, [%rd1+{4 * i}];\n" for i in range(steps))
        body += "".join(f"  add.u32 %r1, %r1, %v{i};\n" for i in range(steps))
        linkage = ".visible" if copy == strong else ".weak"
        text = (
            f"{linkage} .func (.param .u32 r) {name}(.param .u32 a, .param .u64 p)\n{{\n"
            f"  .reg .b32 %r<4>, %v<{steps + 1}>;\n  .reg .b64 %rd<4>;\n"
            "  ld.param.u32 %r1, [a];\n  ld.param.u64 %rd1, [p];\n"
            f"{body}  st.param.u32 [r], %r1;\n  ret;\n}}\n"
        )
        call = (
            "  { .param .u32 a; .param .u64 p; .param .u32 r;\n"
            "  st.param.u32 [a], 7; st.param.u64 [p], %rd2;\n"
            f"  call.uni (r), {name}, (a, p);\n  ld.param.u32 %r2, [r]; }}\n"
            "  st.global.u32 [%rd2], %r2;\n"
        )
        _add(draft, text + _kernel(draft, call))


def weak_variable(draft: Draft) -> None:
    """Add a .weak variable in several files with different initial values."""
    name = draft.name("wv")
    size = draft.rng.choice((4, 8, 64))
    for _ in range(2):
        value = f" = {{{draft.rng.randint(1, 99)}}}" if draft.rng.random() < 0.7 else ""
        align = draft.rng.choice((4, 8, 16))
        body = f"  ld.global.u32 %r1, [{name}];\n  st.global.u32 [%rd2], %r1;\n"
        _add(
            draft,
            _kernel(draft, body, f".weak .global .align {align} .b8 {name}[{size}]{value};"),
        )


def common_variable(draft: Draft) -> None:
    """Add .common variables in one or two files, the later ones smaller."""
    names = [draft.name("cv") for _ in range(draft.rng.randint(1, 4))]
    size = draft.rng.choice((4, 12, 100))
    for step in range(draft.rng.randint(1, 2)):
        lines = "\n".join(
            f".common .global .align {draft.rng.choice((4, 8, 64)) if not step else 4}"
            f" .b8 {name}[{size + 8 * i}];"
            for i, name in enumerate(names)
        )
        body = "".join(
            f"  ld.global.u32 %r1, [{n}];\n  st.global.u32 [%rd2], %r1;\n" for n in names
        )
        _add(draft, _kernel(draft, body, lines))


def file_scope_shared(draft: Draft) -> None:
    """Add file-scope .shared variables used by one or more kernels of the file."""
    lines, kernels = [], []
    names = [draft.name("ps") for _ in range(draft.rng.randint(1, 5))]
    for name in names:
        size, align = draft.rng.choice((1, 3, 4, 12, 40, 128)), draft.rng.choice((1, 4, 8, 16, 32))
        lines.append(f".shared .align {align} .b8 {name}[{size}];")
    for _ in range(draft.rng.randint(1, 3)):
        used = draft.rng.sample(names, draft.rng.randint(1, len(names)))
        body = "".join(
            f"  st.shared.u8 [{n}], 3;\n  bar.sync 0;\n  ld.shared.u8 %r1, [{n}];\n"
            "  st.global.u8 [%rd2], %r1;\n"
            for n in used
        )
        kernels.append(_kernel(draft, body))
    _add(draft, "\n".join(lines) + "".join(kernels))


def extern_shared(draft: Draft) -> None:
    """Add .extern .shared in a PTX file."""
    name = draft.name("px")
    align = draft.rng.choice((4, 8, 16))
    body = (
        f"  st.shared.u32 [{name}], 3;\n  bar.sync 0;\n  ld.shared.u32 %r1, [{name}+4];\n"
        "  st.global.u32 [%rd2], %r1;\n"
    )
    _add(draft, _kernel(draft, body, f".extern .shared .align {align} .b8 {name}[];"))


FEATURES: list[tuple[Feature, int]] = [
    (weak_function, 2),
    (weak_variable, 2),
    (common_variable, 2),
    (file_scope_shared, 2),
    (extern_shared, 1),
]
