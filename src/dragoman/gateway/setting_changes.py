"""Settings that one client of a shared session changes, sent to its other clients: options (mode and model are options)
and the title.

An agent replies to the client that set something; whether it sends an update as well is its own decision. So the
gateway sends an update to the other clients when the reply comes, unless the agent has sent one to all before. An
update that the agent sends after its reply goes to the setting client alone: the others have it already.
"""

from typing import TYPE_CHECKING

from msgspec import UNSET

from dragoman.vocabulary.asking import Reply
from dragoman.vocabulary.events import AnyEvent, OptionsChanged, SessionInfoChanged
from dragoman.vocabulary.options import Option
from dragoman.vocabulary.requests import OptionsSet, TitleSet

if TYPE_CHECKING:
    from dragoman.gateway.client_side import ClientSide

Setting = list[Option] | str | None


class SettingChanges:
    """The settings of one session that its clients were sent last, by type of event."""

    def __init__(self) -> None:
        self._last: dict[type, Setting] = {}
        self._setters: dict[type, ClientSide] = {}  # the client whose change the gateway sent to the others

    def on_reply(self, setter: "ClientSide", reply: Reply) -> AnyEvent | None:
        """Return the event for the other clients, now that `setter` has its reply; None: they have it already."""
        event = _event_of(reply)
        # The agent has sent the same as an update already, before its reply: every client has it.
        if event is None or self._last.get(type(event)) == _setting(event):
            return None
        self._last[type(event)] = _setting(event)
        # Its own update, if the agent sends one behind the reply, is for the setter alone.
        self._setters[type(event)] = setter
        return event

    def clear(self) -> None:
        """Remove what was sent: the session was opened again, and its settings may be others now."""
        self._last.clear()
        self._setters.clear()

    def on_update(
        self, event: "OptionsChanged | SessionInfoChanged", subscribers: "list[ClientSide]"
    ) -> "list[ClientSide]":
        """Return the clients that an update of the agent goes to: all, or those that do not have it yet.

        A version 1 agent sends a mode in two updates, which are the same event here: the second is left out.
        """
        setting = _setting(event)
        setter = self._setters.pop(type(event), None)
        is_known = setting is not None and self._last.get(type(event)) == setting and not _has_more(event)
        if setting is not None:
            self._last[type(event)] = setting
        # The title was removed: setting the same title again is a change then.
        elif isinstance(event, SessionInfoChanged) and event.title is None:
            self._last.pop(SessionInfoChanged, None)
        return [subscriber for subscriber in subscribers if subscriber is setter] if is_known else subscribers


def _event_of(reply: Reply) -> "OptionsChanged | SessionInfoChanged | None":
    match reply:
        case OptionsSet():
            return OptionsChanged(reply.config_options)
        case TitleSet():
            return SessionInfoChanged(title=reply.title)
        case _:
            return None


def _setting(event: "OptionsChanged | SessionInfoChanged") -> Setting:
    if isinstance(event, OptionsChanged):
        return event.config_options
    return event.title if isinstance(event.title, str) else None


def _has_more(event: "OptionsChanged | SessionInfoChanged") -> bool:
    """Return whether an update has more in it than the setting itself."""
    is_timed = isinstance(event, SessionInfoChanged) and event.updated_at is not UNSET
    return is_timed or not (event.meta is event.extras is event.outer is UNSET)
