"""PTX files with a weak function each; a link keeps one of these copies."""

from __future__ import annotations

from helpers import oracle

FEW, MANY = 8, 40  # values that a function has in registers at a time

# A file with a weak function f, a weak variable v, tables, and a kernel that uses f and the tables.
FILE = """\
.version 9.0
.target sm_{target}
.address_size 64
.visible .global .u32 own{mark};
.weak .global .u32 v;
.weak .func f(.param .u64 p)
{{
  .reg .u32 %r<64>;
  .reg .u64 %rd<4>;
  ld.param.u64 %rd1, [p];
  mov.u32 %r0, {mark};
  st.global.u32 [%rd1], %r0;
  {loads}
  {stores}
  ret;
}}
{tables}
.visible .entry k{mark}(.param .u64 p)
{{
  .reg .u64 %rd<6>;
  ld.param.u64 %rd1, [p];
  {{ .param .u64 q; st.param.u64 [q], %rd1; call f, (q); }}
  {uses}
  ret;
}}
"""
TABLE = ".{linkage} .{space} .align 8 .u64 {name}[{count}] = {{{entries}}};"
USE = "ld.{space}.u64 %rd2, [{name}]; st.global.u64 [%rd1+16], %rd2;"


def file(
    arch: str,
    mark: int,
    values: int = FEW,
    space: str = "global",
    tables: dict[str, str] | None = None,
    *,
    target: str = "",
) -> bytes:
    """Return the cubin of a file whose own names end in `mark`.

    `values` is the number of values that `f` has in registers at a time. `tables` has the entries
    of each table in state space `space`, by linkage and name, such as `{"visible t": "f, f"}`.
    """
    numbers = range(1, values + 1)
    rows = [(*name.split(), entries) for name, entries in (tables or {}).items()]
    source = FILE.format(
        target=target or arch,
        mark=mark,
        loads="\n".join(f"ld.volatile.global.u32 %r{i}, [%rd1+{4 * i}];" for i in numbers),
        stores="\n".join(f"st.volatile.global.u32 [%rd1+{8 * i}], %r{i};" for i in numbers),
        tables="\n".join(
            TABLE.format(
                linkage=linkage,
                space=space,
                name=name,
                count=entries.count(",") + 1,
                entries=entries,
            )
            for linkage, name, entries in rows
        ),
        uses="\n".join(USE.format(space=space, name=name) for _, name, _ in rows),
    )
    return oracle.compile(source, arch, name="m.ptx")
