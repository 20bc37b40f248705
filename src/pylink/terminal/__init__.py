"""Tables, numbers, progress and exit statuses of commands."""
