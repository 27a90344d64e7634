"""Whether a program keeps to the protocol: rows, probes that judge them, peers that prove the probes, and reports.

`dragoman check` is the command over this. A row (`rows`) is a requirement as data. A probe (`probes/`) is a small async
function that talks raw JSON-RPC over a connection (`connection`, and `dialogue` for what every probe needs) and raises
what it finds (`verdicts`). `run` judges a subject (`subject`) by all of them; `report` and `exports` tell the result.

Nothing here knows our own client or agent: what is judged must not be read by the code that is judged. Every row is
proven by `peer`: a conforming agent passes it, and the same agent with one switch fails it.
"""
