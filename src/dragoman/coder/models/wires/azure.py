"""Chat Completions at Azure, where a model is a deployment: another path and another header for the key.

An address is that of the resource (`https://NAME.openai.azure.com`), or ends in `/v1` already. With an `api_version`
the older path is taken, which names the deployment.
"""

from typing import Final
from urllib.parse import quote, urlsplit

from dragoman.coder.models.endpoints import Endpoint
from dragoman.coder.models.facts import ModelFacts
from dragoman.coder.models.wires.openai_chat import OpenAIChatWire

_CHAT: Final = "/chat/completions"


class AzureWire(OpenAIChatWire):
    """Chat Completions of a deployment."""

    bound = "max_completion_tokens"

    def __init__(self, endpoint: Endpoint, known: ModelFacts) -> None:
        super().__init__(endpoint, known)
        self.path = _path(endpoint)
        self._headers = {"api-key": endpoint.key.reveal()} if endpoint.key else {}


def _path(endpoint: Endpoint) -> str:
    version = endpoint.config.api_version
    if version:
        return f"/openai/deployments/{quote(endpoint.model, safe='')}{_CHAT}?api-version={quote(version, safe='')}"
    return _CHAT if urlsplit(endpoint.base_url).path.endswith("/v1") else f"/openai/v1{_CHAT}"
