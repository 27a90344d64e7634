"""What peers are known to send against the schema, read as the one thing it can mean."""
