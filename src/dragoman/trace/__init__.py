"""Recordings of what passed between a client and an agent: one file format, and what is done with such a file."""
