"""Being an ACP client, for any face."""
