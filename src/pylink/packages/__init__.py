"""Optional Python packages: their locations, and the extras that install them."""
