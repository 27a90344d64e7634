"""All probes of servers: importing this registers them in `probes.SERVER_PROBES`."""

from dragoman.conformance.servers import probes_of_faults, probes_of_guards, probes_of_sockets
from dragoman.conformance.servers.probes import SERVER_PROBES

__all__ = ["SERVER_PROBES", "probes_of_faults", "probes_of_guards", "probes_of_sockets"]
