"""Send mail."""
