"""Tasks of our own for coding agents, and what runs and grades them: `./dev eval`."""
