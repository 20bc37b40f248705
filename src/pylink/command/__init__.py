"""The command line: options, their files and checks, help, and toolkits with pylink in them."""
