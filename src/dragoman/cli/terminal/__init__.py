"""The faces of a client on a terminal: what an agent does as text, and how a person is asked."""
