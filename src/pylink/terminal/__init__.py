"""What commands print with: tables, progress, the end of a command."""
