"""Our coding agent: a brain for `dragoman.agent`. It knows no wire and no transport."""
