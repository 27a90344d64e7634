"""The models of clouds, whose requests are signed by libraries of theirs: Bedrock by boto3, Vertex AI by google-genai.

Loaded with the first session that has such a model, in a thread, and never before. Credentials are those that the
cloud's own programs find: variables, files of the user, the machine's role; none of them comes through here but a key
that `dragoman login` has kept. A missing one is a `ModelFailed` that says which command makes it.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Final, cast

import httpx2
from pydantic_ai.models import Model as LibraryModel

from dragoman.coder.models.contract import ModelFailed
from dragoman.coder.models.endpoints import Endpoint
from dragoman.coder.models.facts import ModelFacts
from dragoman.coder.models.failures import explain_failure
from dragoman.coder.models.known_providers import Family
from dragoman.coder.models.library_connection import LibraryConnection
from dragoman.coder.models.library_failures import explicable
from dragoman.coder.models.timeouts import ModelTimeouts

_CLOUD_SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"


def connect_by_library(endpoint: Endpoint, known: ModelFacts, timeouts: ModelTimeouts) -> LibraryConnection:
    """Return a connection to a model of a cloud. Raises `ModelFailed`, and `ImportError` where a library is missing."""
    make = _MAKERS[endpoint.family]

    def make_model(to: Endpoint, client: httpx2.AsyncClient) -> LibraryModel:
        client.headers.update(to.sent_headers)
        return make(to, client, timeouts)

    # Bedrock is told so when its client is made.
    return LibraryConnection(endpoint, known, timeouts, make_model, tells_retries=endpoint.family != "bedrock")


def _bedrock(endpoint: Endpoint, client: httpx2.AsyncClient, timeouts: ModelTimeouts) -> LibraryModel:
    # By name: these have no types, and are not installed everywhere that the types are checked.
    boto3, botocore_config = import_module("boto3"), import_module("botocore.config")
    from pydantic_ai.models.bedrock import BedrockConverseModel
    from pydantic_ai.providers.bedrock import BedrockProvider

    # One attempt, since retries are the loop's; and no variable of AWS moves the address that was shown.
    options: dict[str, Any] = {
        "connect_timeout": timeouts.connect,
        "read_timeout": timeouts.chunk,
        "retries": {"total_max_attempts": 1},
        "ignore_configured_endpoint_urls": True,
    }
    if endpoint.key is not None:
        options["signature_version"] = "bearer"
    session = boto3.Session(botocore_session=_bearer_session(endpoint.key.reveal()) if endpoint.key else None)
    made = session.client(
        "bedrock-runtime",
        region_name=endpoint.config.region or None,
        endpoint_url=endpoint.base_url,
        config=botocore_config.Config(**options),
    )
    headers = endpoint.sent_headers

    def add_headers(request: Any, **_: object) -> None:
        for name, value in headers.items():
            request.headers[name] = value

    made.meta.events.register("before-sign.bedrock-runtime", add_headers)
    return BedrockConverseModel(endpoint.model, provider=BedrockProvider(bedrock_client=made))


def _bearer_session(key: str) -> Any:
    """Return a session of botocore whose requests carry this key, and which looks for no other credentials."""
    botocore_session, tokens = import_module("botocore.session"), import_module("botocore.tokens")

    class BearerSession(botocore_session.Session):  # type: ignore[misc, name-defined]
        def get_auth_token(self, **_: object) -> Any:
            return tokens.FrozenAuthToken(key)

        def get_credentials(self) -> None:
            return None

    return BearerSession()


def _vertex(endpoint: Endpoint, client: httpx2.AsyncClient, timeouts: ModelTimeouts) -> LibraryModel:
    import google.auth
    from google.auth.exceptions import GoogleAuthError
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.providers.google_cloud import GoogleCloudProvider

    place = endpoint.config
    try:
        credentials, found = google.auth.default(scopes=[_CLOUD_SCOPE])
    except GoogleAuthError as error:
        # Not its text, which is a page.
        raise explain_failure(explicable(error), endpoint) from None
    project = place.project or found
    if not project:
        raise ModelFailed(
            "auth", f"{endpoint.provider} needs a project: write project in [providers.{endpoint.provider}]"
        )
    provider = GoogleCloudProvider(
        credentials=credentials,
        project=project,
        location=place.region,
        http_client=cast(Any, client),
        base_url=endpoint.base_url,
    )
    return GoogleModel(endpoint.model, provider=provider)


_Make = Callable[[Endpoint, httpx2.AsyncClient, ModelTimeouts], LibraryModel]
_MAKERS: Final[Mapping[Family, _Make]] = {"bedrock": _bedrock, "vertex": _vertex}
