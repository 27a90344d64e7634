"""The method name of a request in metrics and logs: one of a fixed list, so that a client cannot add names."""

from typing import Final

from dragoman.vocabulary import requests as ask
from dragoman.vocabulary.asking import Request

_NAMES: Final[dict[type[Request], str]] = {
    ask.Login: "auth/login",
    ask.Logout: "auth/logout",
    ask.GetAuthStatus: "auth/status",
    ask.NewSession: "session/new",
    ask.ForkSession: "session/fork",
    ask.ListSessions: "session/list",
    ask.CloseSession: "session/close",
    ask.DeleteSession: "session/delete",
    ask.GetSessionStatus: "session/status",
    ask.SetOption: "session/set_config_option",
    ask.PromptRequest: "session/prompt",
}


def method_of(request: Request) -> str:
    """The method, as version 2 names it."""
    if isinstance(request, ask.ResumeSession):
        return "session/load" if request.replay_from else "session/resume"
    return _NAMES.get(type(request), "other")
