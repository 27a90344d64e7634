"""The wire forms of hosted models: what a request is in each, and what the events of its stream mean."""
