"""The session log: what a client was sent is on disk. One interface (`contract`), one embedded engine (`sqlite`)."""
