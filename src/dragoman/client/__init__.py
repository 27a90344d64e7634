"""Being an ACP client, for any user interface."""
