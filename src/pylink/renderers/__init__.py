"""Writes diagnostics as text, as SARIF and as a log."""
