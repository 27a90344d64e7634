"""Tools: what the model may do. One file an idea, all behind `contract.Tool`."""
