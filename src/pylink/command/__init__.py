"""The command line, its help, manual pages and completions, and toolkits with pylink in them."""
