"""Describes the contents of cubins, and compares two cubins.

`pylink inspect` is the command; `image.Image` reads a cubin, `contents.rows` decodes a section,
`compare.differences` describes differences in the same terms. The reader is independent of the
linker's own, and made for inspection, not for speed.
"""
