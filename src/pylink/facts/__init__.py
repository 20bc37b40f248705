"""What things of CUDA are, as tables."""
