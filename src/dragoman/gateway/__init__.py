"""ACP over the network: who may come in (guard), what is on the wire (app), what outlives a connection (sessions)."""
