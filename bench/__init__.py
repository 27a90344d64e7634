"""Dragoman side by side with its peers: ratios within one run, never absolute promises. `python -m bench --help`."""
