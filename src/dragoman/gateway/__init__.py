"""ACP over the network: who may come in (guard), what is on the wire (app), and what outlives a connection (rooms)."""
