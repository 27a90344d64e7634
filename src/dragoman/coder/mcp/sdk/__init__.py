"""Everything that needs the `mcp` package. Importing a module of this folder takes a second: do it in a thread."""
