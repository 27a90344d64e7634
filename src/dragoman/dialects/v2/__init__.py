"""The draft of version 2: its codec, and the dialect of each role."""
