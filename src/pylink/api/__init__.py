"""The Python interface: what `import pylink` offers to other programs.

`linker.link` and `linker.Linker` link, `options.LinkOptions` holds what links have in common,
`inputs.Input` says more of an input than its path, `result.LinkResult` is what a link made.
`keywords` and `options` follow from the option table: `generate` writes them.
"""
