"""What `dragoman bridge` supplies: prompts in a queue, permissions by rules, and sessions from our own recordings."""

from dragoman.bridge import BridgedPrompts, BridgeServices, ServiceChain
from dragoman.cli.bridge_permissions import BridgedPermissions
from dragoman.cli.bridge_sessions import BridgedSessions
from dragoman.client.permission_policy import PermissionPolicy


def services_for(
    agent: str, policy: PermissionPolicy, *, records: bool
) -> tuple[BridgeServices, BridgedSessions | None]:
    """Return the services of a bridge to the agent called `agent`, and those for sessions among them.

    `records` False, an empty name or the setting `record_sessions = false`: no sessions are recorded or supplied.
    Raises `SettingsError`.
    """
    services: list[BridgeServices] = [BridgedPrompts()]
    if policy != PermissionPolicy():
        services.append(BridgedPermissions(agent, policy))
    sessions = _sessions_of(agent) if records else None
    if sessions is not None:
        services.append(sessions)  # nearest to the agent: it knows what the agent calls a session
    return ServiceChain(services), sessions


def _sessions_of(agent: str) -> BridgedSessions | None:
    from dragoman.cli.settings import read_settings

    settings = read_settings()
    if not agent or not settings.flag("record_sessions"):
        return None
    from dragoman.cli.home import open_recordings

    return BridgedSessions(open_recordings(), agent, days=settings.number("record_days"))
