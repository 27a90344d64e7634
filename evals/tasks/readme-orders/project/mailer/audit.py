"""Keep a record of every mail that was sent."""
