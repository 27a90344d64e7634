"""Sessions in PostgreSQL, for agents on several machines. Needs the extra `cluster` (asyncpg)."""
