"""Section kinds and their rules."""
