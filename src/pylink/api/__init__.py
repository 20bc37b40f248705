"""The Python interface that `import pylink` offers to other programs.

`linker.link` and `linker.Linker` link, `options.LinkOptions` holds common options of links,
`inputs.Input` describes an input, `result.LinkResult` is the result of a link. `generate` writes
the modules `keywords` and `options`, and the reference in docs/python.md, from the option table.
"""
