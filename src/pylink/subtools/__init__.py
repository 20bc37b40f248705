"""The tools that a link runs: ptxas for PTX, libNVVM for LTO-IR."""
