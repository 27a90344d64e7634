"""Our coding agent, built on `dragoman.agent`. It knows no wire and no transport."""
