"""Names of the numbers in CUDA ELF files."""
