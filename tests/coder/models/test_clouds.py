"""Models of Bedrock and Vertex AI through the clouds' own client libraries, at a server that checks credentials."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from dragoman.coder.context import ContextAssistantMessage, ContextToolCall, ContextToolResult
from dragoman.coder.credentials import Credentials, Secret
from dragoman.coder.models import providers
from dragoman.coder.models.contract import (
    FailureKind,
    ModelFailed,
    TextDelta,
    ThoughtDelta,
    ToolCallRequested,
    UsageReported,
)
from dragoman.coder.models.endpoints import CONFIG_SOURCE, Endpoint, Family, ProviderConfig
from dragoman.coder.models.factory import ModelUnavailable, make_model
from dragoman.coder.models.names import ModelName
from tests.coder.models.asking import ask, connected, raw_of, said, without_raw
from tests.support.certificates import make_certificate, server_side
from tests.support.cloud_server import ACCESS_KEY, TOKEN, CloudServer, cloud_server

CLAUDE = "eu.anthropic.claude-sonnet-4-5-20250929-v1:0"
MODELS: dict[Family, str] = {"bedrock": CLAUDE, "vertex": "gemini-2.5-pro"}
# Made for this process: what signs the requests for a token.
GOOGLE_KEY = rsa.generate_private_key(65537, 2048)
each_cloud = pytest.mark.parametrize("family", MODELS)


@pytest.fixture
def up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CloudServer]:
    """A cloud, with the credentials of a machine in it, and none of this one."""
    with cloud_server() as server:
        for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_BEARER_TOKEN_BEDROCK"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS_KEY)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "canary-secret-of-aws")
        monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
        monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
        monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path / "gcloud"))
        monkeypatch.setenv("NO_GCE_CHECK", "true")
        account = tmp_path / "account.json"
        account.write_text(json.dumps(server.google_account(GOOGLE_KEY)))
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(account))
        server.events = [
            ("messageStart", {"role": "assistant"}),
            ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"reasoningContent": {"text": "Let me see"}}}),
            ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"reasoningContent": {"signature": "SEALED"}}}),
            ("contentBlockStop", {"contentBlockIndex": 0}),
            ("contentBlockDelta", {"contentBlockIndex": 1, "delta": {"text": "Rea"}}),
            ("contentBlockDelta", {"contentBlockIndex": 1, "delta": {"text": "ding"}}),
            ("contentBlockStop", {"contentBlockIndex": 1}),
            (
                "contentBlockStart",
                {"contentBlockIndex": 2, "start": {"toolUse": {"toolUseId": "tooluse_1", "name": "read_file"}}},
            ),
            ("contentBlockDelta", {"contentBlockIndex": 2, "delta": {"toolUse": {"input": '{"path": "x"}'}}}),
            ("contentBlockStop", {"contentBlockIndex": 2}),
            ("messageStop", {"stopReason": "tool_use"}),
            (
                "metadata",
                {"usage": {"inputTokens": 1000, "outputTokens": 100, "totalTokens": 1100}, "metrics": {"latencyMs": 1}},
            ),
        ]
        call = {"functionCall": {"name": "read_file", "args": {"path": "x"}}, "thoughtSignature": "U0VBTEVE"}
        parts = [{"text": "Let me see", "thought": True}, {"text": "Reading"}, call]
        server.chunks = [
            {"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}]},
            {
                "candidates": [{"content": {"role": "model", "parts": []}, "finishReason": "STOP"}],
                "usageMetadata": {"promptTokenCount": 1000, "candidatesTokenCount": 100, "totalTokenCount": 1100},
                "modelVersion": "gemini-2.5-pro",
            },
        ]
        yield server


def place(up: CloudServer, family: Family, key: str = "") -> Endpoint:
    settings = ProviderConfig(region="eu-west-1", project="my-project")
    secret = Secret(key) if key else None
    headers = {"x-team": Secret("tools")}
    return Endpoint(family, family, MODELS[family], up.url, secret, settings, CONFIG_SOURCE, headers)


@each_cloud
async def test_thoughts_words_calls_usage_and_cost_come_through_and_go_back(up: CloudServer, family: Family) -> None:
    async with connected(place(up, family)) as it:
        *words, used, call = without_raw(pieces := await ask(it))
        assert words == [ThoughtDelta("Let me see"), TextDelta("Reading")]
        assert isinstance(call, ToolCallRequested) and call[:2] == ("read_file", {"path": "x"})
        assert isinstance(used, UsageReported) and used[:2] == (1000, 100) and used.cost
        raw = json.loads(json.dumps(raw_of(pieces)))
        calls = [ContextToolCall(call.id, "read_file", {"path": "x"})]
        answer = ContextAssistantMessage("Reading", "Let me see", calls, raw)
        await ask(it, said("hi"), answer, ContextToolResult(call.id, "read_file", "RESULT"))
    first, second = up.requests
    assert first.headers["x-team"] == "tools"
    assert {"bedrock": "SEALED", "vertex": "U0VBTEVE"}[family] in json.dumps(second.body)
    assert "RESULT" in json.dumps(second.body) and "Be brief." in json.dumps(second.body)
    assert "canary" not in json.dumps(second.body).lower()


async def test_bedrock_is_asked_with_a_signature_and_vertex_with_a_token_of_the_machine(up: CloudServer) -> None:
    for family in MODELS:
        async with connected(place(up, family)) as it:
            await ask(it)
    bedrock, vertex = up.requests
    assert bedrock.path.startswith("/model/eu.anthropic.claude-sonnet-4-5") and "converse-stream" in bedrock.path
    assert f"Credential={ACCESS_KEY}/" in bedrock.headers["authorization"]
    model = "/projects/my-project/locations/eu-west-1/publishers/google/models/gemini-2.5-pro:streamGenerateContent"
    assert model in vertex.path
    assert vertex.headers["authorization"] == f"Bearer {TOKEN}"


async def test_a_key_of_bedrock_is_sent_in_place_of_a_signature_and_only_over_tls(
    up: CloudServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with connected(place(up, "bedrock", key=ACCESS_KEY)) as it:
        with pytest.raises(ModelFailed):
            await ask(it)
    assert up.requests == []
    certificate = make_certificate(tmp_path, "localhost")
    monkeypatch.setenv("AWS_CA_BUNDLE", str(certificate))
    with cloud_server(server_side(certificate)) as safe:
        safe.events = up.events
        async with connected(place(safe, "bedrock", key=ACCESS_KEY)) as it:
            assert TextDelta("Reading") in await ask(it)
    assert safe.requests[0].headers["authorization"] == f"Bearer {ACCESS_KEY}"


FAILURES: dict[str, tuple[Family, int, dict[str, object], FailureKind]] = {
    "bedrock throttles": ("bedrock", 429, {"message": "Too many requests"}, "rate_limit"),
    "bedrock has no such model": ("bedrock", 404, {"message": "Could not resolve the model"}, "server"),
    "bedrock fails": ("bedrock", 500, {"message": "oops"}, "server"),
    "bedrock refuses": ("bedrock", 403, {"message": "You do not have access to the model"}, "auth"),
    "vertex throttles": ("vertex", 429, {"error": {"code": 429, "status": "RESOURCE_EXHAUSTED"}}, "rate_limit"),
    "vertex fails": ("vertex", 500, {"error": {"code": 500, "status": "INTERNAL"}}, "server"),
    "vertex refuses": ("vertex", 403, {"error": {"code": 403, "status": "PERMISSION_DENIED"}}, "auth"),
}


@pytest.mark.parametrize(("family", "status", "body", "kind"), FAILURES.values(), ids=FAILURES)
async def test_a_failure_has_a_kind_and_is_made_once(
    up: CloudServer, family: Family, status: int, body: dict[str, object], kind: FailureKind
) -> None:
    up.status, up.error = status, body
    async with connected(place(up, family)) as it:
        with pytest.raises(ModelFailed) as caught:
            await ask(it)
    assert (caught.value.kind, len(up.requests)) == (kind, 1)
    assert "canary" not in str(caught.value).lower()


@each_cloud
async def test_who_is_not_logged_in_is_told_how_to(
    up: CloudServer, family: Family, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS")
    ways = {"bedrock": "aws configure|aws sso login", "vertex": "gcloud auth application-default login"}
    async with connected(place(up, family)) as it:
        with pytest.raises(ModelFailed, match=ways[family]) as caught:
            await ask(it)
    assert (caught.value.kind, up.requests) == ("auth", [])


async def test_a_login_that_has_ended_is_said(up: CloudServer) -> None:
    up.login_ends = True
    async with connected(place(up, "vertex")) as it:
        with pytest.raises(ModelFailed, match=r"vertex .* does not accept the login\. Run: gcloud auth") as caught:
            await ask(it)
    assert (caught.value.kind, up.requests) == ("auth", [])


@pytest.mark.parametrize("provider", MODELS)
def test_a_missing_extra_is_named(provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(providers, "_are_installed", lambda *names: "pydantic_ai" not in names)
    config = {"providers": {provider: {"region": "eu-west-1"}}}
    with pytest.raises(ModelUnavailable, match=rf"need more packages: pip install 'dragoman\[{provider}\]'"):
        make_model(ModelName(provider, "m"), environment={}, config=config, credentials=Credentials())
