"""The session log: what was told is kept. One interface (`contract`), the embedded engine (`sqlite`)."""
