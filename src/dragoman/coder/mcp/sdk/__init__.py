"""Everything that needs the `mcp` package. Importing a module of this folder takes a second: do it in a thread."""

import logging

# The SDK tells loggers what it does and what was sent; httpx2 names every URL. There are keys in both.
for _name in ("mcp", "client", "httpx2", "httpcore2"):
    logging.getLogger(_name).addHandler(logging.NullHandler())
    logging.getLogger(_name).propagate = False
