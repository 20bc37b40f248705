"""The phases of a link, one file each."""
