"""Output of commands: tables, progress and exit statuses."""
