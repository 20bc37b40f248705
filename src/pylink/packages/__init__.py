"""Optional Python packages: where they are, and which extra brings them."""
