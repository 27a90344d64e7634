"""Judge servers: the remote transport of ACP over HTTP, event streams and WebSockets, its limits and its guard.

A `doors.ServerDoor` is how a server is reached: `http_door` over the network, `peer` in this process, which is the
server that proves the probes. `trial` has what every probe needs, the probes stand in `probes_*`, `run` judges by them.
"""
