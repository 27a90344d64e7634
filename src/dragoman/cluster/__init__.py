"""Several machines as one server: which node works on which session, and how they reach each other."""
