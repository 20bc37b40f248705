"""Facts of CUDA's file formats, architectures and releases, as tables."""
