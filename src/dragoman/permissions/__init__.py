"""One permission engine, for our own agent and for the client's policy. Pure.

`facts` says what a call would do, `policy` what is allowed without a question, `rule` what the user has said about it,
and `decision.decide` what follows from the three. Deny beats ask beats allow, and what is not known is asked or denied.

Facts are gathered at the edges: by the coding agent from its own tools (`coder/permissions.py`), by a client from the
requests of an agent that it does not trust (`client/call_facts.py`). Nothing here looks at the disk.
"""
