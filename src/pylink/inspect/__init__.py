"""What is in a cubin, in words, and how two cubins differ.

`pylink inspect` is the command; `image.Image` reads a cubin, `contents.rows` decodes a section,
`compare.differences` says in the same words what is unequal. The reader is independent of the
linker's own and made for looking, not for speed.
"""
