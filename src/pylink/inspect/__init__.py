"""Describes the contents of cubins, and compares two cubins.

`pylink inspect` is the command; `image.Image` reads a cubin, `contents.find_reader` returns the
function that decodes a section, and `compare.differences` describes differences in the same terms.
The reader is independent of the linker's own, and made for inspection, not for speed.
"""
