"""Checkpoints: what files were before each turn that changed any, and the way back to it."""
