"""Which tokens of an OpenID issuer count: every way in which one can be made to look like one of them."""

import base64
import time
from typing import Any

import jwt
import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from dragoman.gateway.issuer_jwt import JwtHead, end_of, head_of, key_for, verified_claims
from dragoman.gateway.issuer_settings import IssuerSettings, NotAccepted
from tests.support.openid_issuer import CLIENT, OpenIdIssuer

URL = "https://login.example.org"


@pytest.fixture
def issuer() -> OpenIdIssuer:
    return OpenIdIssuer(URL)


def verdict(issuer: OpenIdIssuer, token: str) -> Any:
    """The claims of a token, or why it is refused."""
    try:
        head = head_of(token)
        key = key_for(head, issuer.key_set())
        return "no such key" if key is None else verified_claims(token, key, URL, (CLIENT,))
    except NotAccepted as error:
        return str(error)


def forged(head: dict[str, Any], claims: dict[str, Any], signature: bytes = b"") -> str:
    parts = [msgspec.json.encode(head), msgspec.json.encode(claims), signature]
    return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts)


@pytest.mark.parametrize("algorithm", ["ES256", "RS256", "PS256"])
def test_a_token_of_the_issuer_for_us_counts(issuer: OpenIdIssuer, algorithm: str) -> None:
    issuer.rotate("k", algorithm=algorithm)
    claims = verdict(issuer, issuer.token())
    assert (claims["sub"], claims["groups"]) == ("ada", ["developers"])


NOW = int(time.time())
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "another issuer": ({"iss": "https://evil.example.org"}, "it is of another issuer"),
    "the issuer with a slash": ({"iss": URL + "/"}, "it is of another issuer"),
    "another audience": ({"aud": "other"}, "it is for another audience"),
    "no audience": ({"aud": None}, "it has no claim 'aud'"),
    "expired": ({"exp": NOW - 3600}, "it has expired"),
    "without an end": ({"exp": None}, "it has no claim 'exp'"),
    "not yet": ({"nbf": NOW + 3600}, "it is not valid yet"),
    "of the future": ({"iat": NOW + 3600}, "it is not valid yet"),
    "of nobody": ({"sub": None}, "it has no claim 'sub'"),
    "bound to a key": ({"cnf": {"jkt": "x"}}, "it counts only with a proof that is not taken here"),
}


@pytest.mark.requirement("K31")
@pytest.mark.parametrize("case", REFUSED)
def test_a_token_that_is_not_for_us_now_is_refused(issuer: OpenIdIssuer, case: str) -> None:
    claims, reason = REFUSED[case]
    assert verdict(issuer, issuer.token(**claims)) == reason


@pytest.mark.requirement("K31")
@pytest.mark.parametrize("name", ["none", "None", "NONE", "HS256", "HS512", "RS1", ""])
def test_an_algorithm_without_a_key_pair_is_refused(issuer: OpenIdIssuer, name: str) -> None:
    claims = {"iss": URL, "aud": CLIENT, "sub": "ada", "exp": time.time() + 300}
    assert "its algorithm is none of" in verdict(issuer, forged({"alg": name, "kid": "first"}, claims))


@pytest.mark.requirement("K31")
def test_the_public_key_is_no_secret_of_an_hmac(issuer: OpenIdIssuer) -> None:
    import hashlib
    import hmac

    issuer.rotate("k", algorithm="RS256")
    public = issuer.key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    claims = {"iss": URL, "aud": CLIENT, "sub": "ada", "exp": time.time() + 300}
    for name in ("HS256", "RS256"):
        begin = forged({"alg": name, "kid": "k", "typ": "JWT"}, claims).rpartition(".")[0]
        token = forged(
            {"alg": name, "kid": "k", "typ": "JWT"}, claims, hmac.digest(public, begin.encode(), hashlib.sha256)
        )
        assert isinstance(verdict(issuer, token), str), name


@pytest.mark.requirement("K31")
def test_a_token_that_was_changed_or_signed_by_another_is_refused(issuer: OpenIdIssuer) -> None:
    head, claims, signature = issuer.token().split(".")
    other = OpenIdIssuer(URL)
    raised = forged({}, {"iss": URL, "aud": CLIENT, "sub": "root", "exp": NOW + 300}).split(".")[1]
    for token in (f"{head}.{raised}.{signature}", f"{head}.{claims}.", other.token()):
        assert verdict(issuer, token) == "its signature is not one of its issuer"


@pytest.mark.parametrize(
    ("head", "reason"),
    [
        ({"typ": "logout+jwt"}, "it is a token for something else"),
        ({"typ": "dpop+jwt"}, "it is a token for something else"),
        ({"typ": 7}, "it is a token for something else"),
        ({"crit": ["exp"]}, "it is no JSON Web Token"),
        ({"kid": "k" * 300}, "its key has no name that can be one"),
    ],
)
def test_a_token_for_something_else_is_refused(issuer: OpenIdIssuer, head: dict[str, Any], reason: str) -> None:
    claims = {"iss": URL, "aud": CLIENT, "sub": "ada", "exp": time.time() + 300}
    assert verdict(issuer, forged({"alg": "ES256", "kid": "first", **head}, claims)) == reason


@pytest.mark.parametrize("text", ["..", "a.b.c", "e30.e30.", "x" * 9000, "[].[].[]", "W10.W10.W10"])
def test_what_is_no_token_is_refused(issuer: OpenIdIssuer, text: str) -> None:
    assert isinstance(verdict(issuer, text), str)


def test_access_tokens_by_their_type_count(issuer: OpenIdIssuer) -> None:
    assert verdict(issuer, issuer.token(head={"typ": "at+JWT"}))["sub"] == "ada"


def test_a_key_counts_only_for_what_it_says_it_is_for(issuer: OpenIdIssuer) -> None:
    (key,) = issuer.key_set()
    head = JwtHead("ES256", "first")
    assert key_for(head, [key]) is not None
    for other in ({"use": "enc"}, {"alg": "ES384"}, {"key_ops": ["sign"]}, {"kid": "x"}, {"crv": "P-384"}, {"x": "?"}):
        assert key_for(head, [key | other]) is None, other
    assert key_for(JwtHead("RS256", "first"), [key]) is None


def test_a_key_is_never_guessed_among_several(issuer: OpenIdIssuer) -> None:
    issuer.rotate("second", keep=True)
    assert key_for(JwtHead("ES256", None), issuer.key_set()) is None
    assert key_for(JwtHead("ES256", None), issuer.key_set()[:1]) is not None
    twice = [key | {"kid": "same"} for key in issuer.key_set()]
    assert key_for(JwtHead("ES256", "same"), twice) is None


def test_a_short_key_is_none() -> None:
    public = rsa.generate_private_key(65537, 1024).public_key()
    key = jwt.algorithms.RSAAlgorithm.to_jwk(public, as_dict=True) | {"kid": "k"}
    assert key_for(JwtHead("RS256", "k"), [key]) is None


def test_a_token_ends_when_it_says_but_is_looked_at_again_after_a_day() -> None:
    now = time.time()
    assert now + 300 <= end_of({"exp": now + 300}, 86_400) <= now + 400
    assert end_of({"exp": now + 10**9}, 86_400) <= time.time() + 86_400


SETTINGS = IssuerSettings(
    issuer=URL,
    client_id=CLIENT,
    scopes={"developers": ("prompt", "read"), "operators": ("admin",)},
)


@pytest.mark.requirement("K32")
@pytest.mark.parametrize(
    ("claims", "scopes"),
    [
        ({}, ("read",)),
        ({"groups": ["developers"]}, ("read", "prompt")),
        ({"groups": ["x", "developers", "operators"]}, ("read", "prompt", "admin")),
        ({"groups": "operators other"}, ("admin",)),
        ({"groups": ["Developers", 7, None, {"developers": 1}]}, ("read",)),
        ({"groups": {"developers": True}}, ("read",)),
    ],
)
def test_claims_become_scopes_by_rules_and_the_least_without_one(claims: dict[str, Any], scopes: Any) -> None:
    assert SETTINGS.granted(claims) == scopes


def test_the_claim_of_scopes_may_be_inside_of_others_or_an_address() -> None:
    inside = msgspec.structs.replace(SETTINGS, scope_claim="realm_access.roles")
    assert inside.granted({"realm_access": {"roles": ["operators"]}}) == ("admin",)
    assert inside.granted({"realm_access": ["operators"]}) == ("read",)
    address = msgspec.structs.replace(SETTINGS, scope_claim="https://example.org/groups")
    assert address.granted({"https://example.org/groups": ["operators"]}) == ("admin",)


@pytest.mark.requirement("K32")
def test_a_principal_is_apart_from_those_of_tokens_and_an_address_must_be_verified() -> None:
    assert SETTINGS.principal({"sub": "ada"}) == "oidc:ada"
    by_mail = msgspec.structs.replace(SETTINGS, principal_claim="email")
    assert by_mail.principal({"email": "ada@example.org", "email_verified": True}) == "oidc:ada@example.org"
    for claims in ({"email": "ada@example.org"}, {"email": "ada@example.org", "email_verified": "true"}, {"sub": "x"}):
        with pytest.raises(NotAccepted):
            by_mail.principal(claims)
    for sub in ("", "a\nb", "x" * 256, 7, None, ["ada"]):
        with pytest.raises(NotAccepted):
            SETTINGS.principal({"sub": sub})
