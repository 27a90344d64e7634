"""Version 1 of the protocol: its codec, and the dialect of each role."""
