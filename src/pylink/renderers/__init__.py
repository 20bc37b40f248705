"""Diagnostics as text, as SARIF, as a log."""
