"""A failing Python test, and the one small change that makes it pass."""
