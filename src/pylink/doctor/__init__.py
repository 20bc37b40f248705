"""`pylink doctor`: what of an installation is missing or slow, and the command that fixes it."""
