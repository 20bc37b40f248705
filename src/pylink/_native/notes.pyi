"""Notes and compatibility attributes: one section of the output from all those of the inputs."""

def join_sections(arena: bytes, sections: bytes, kind: int) -> bytes:
    """The bytes of every input section of that kind, one after the other."""

def has_attribute(arena: bytes, sections: bytes, kind: int, attribute: int) -> bool:
    """Whether any input section of that kind has an EIATTR record with that attribute."""

def merge_compat(
    arena: bytes, sections: bytes, family: int, arch_specific: bool, has_code: bool
) -> bytes:
    """The attributes of .nv.compat, merged over all inputs; empty for inputs without any.

    Attribute 2 is 0 if any input has 0, else the largest; 3 the union; 6 and the bytes of 7 stay
    while equal, else 1 and the larger; 9 depends on the target; 0x0b, from sm_100 on, the
    intersection, all zero when the output has no code. Order and formats are those of the first input. Source: experiments, in
    docs/format-notes.md.
    """
