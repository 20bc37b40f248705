"""`pylink doctor`: reports missing or slow parts of an installation and the command to fix them."""
