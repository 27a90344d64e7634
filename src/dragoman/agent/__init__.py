"""Being an ACP agent, for any brain."""
