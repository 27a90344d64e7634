"""Whether a JSON Web Token is one of the issuer, for us, now. No I/O; keys are arguments.

The algorithm is looked up in a table of ours before anything else of a token is read, and has to fit the key: neither
`none` nor a shared secret is in it, so a public key never becomes the secret of an HMAC (RFC 8725 2.1, 3.1).
"""

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from dragoman.gateway.issuer_settings import NotAccepted

if TYPE_CHECKING:
    from jwt import PyJWK

# By algorithm: the type of its key, and its curve.
_KEYS: Final = {
    **dict.fromkeys(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), ("RSA", None)),
    "ES256": ("EC", "P-256"),
    "ES384": ("EC", "P-384"),
    "ES512": ("EC", "P-521"),
    "EdDSA": ("OKP", "Ed25519"),
}
# Smaller RSA keys can be broken (RFC 7518 3.3); larger ones cost milliseconds for each token.
_RSA_BITS: Final = range(2048, 8193)
# Kinds of tokens that say who a person is; a logout token or a proof has other rules (RFC 8725 3.11).
_TYPES: Final = (None, "jwt", "at+jwt", "application/at+jwt")
# Larger ones have no place in a header of HTTP.
TOKEN_BYTES: Final = 8 * 1024
_KEY_ID_CHARACTERS: Final = 256
# By so much the clocks of two machines may differ.
LEEWAY_SECONDS: Final = 60


class JwtHead(NamedTuple):
    """The head of a token, which nothing vouches for yet."""

    algorithm: str
    key_id: str | None


def is_like_jwt(shown: bytes) -> bool:
    """Return whether a bearer token has the form of a JWT. Tokens of ours have no dots."""
    return shown.count(b".") == 2


def head_of(token: str) -> JwtHead:
    """Return the head of a token. Raise `NotAccepted` for what we never verify."""
    import jwt

    if len(token) > TOKEN_BYTES:
        raise NotAccepted(f"it has more than {TOKEN_BYTES} bytes")
    try:
        head = jwt.get_unverified_header(token)
    except (jwt.PyJWTError, ValueError, RecursionError):
        raise NotAccepted("it is no JSON Web Token") from None
    algorithm, key_id, kind = head.get("alg"), head.get("kid"), head.get("typ")
    if not isinstance(algorithm, str) or algorithm not in _KEYS:
        raise NotAccepted("its algorithm is none of " + ", ".join(_KEYS))
    # What a critical extension changes is not known here (RFC 7515 4.1.11).
    if "crit" in head or (kind.lower() if isinstance(kind, str) else kind) not in _TYPES:
        raise NotAccepted("it is a token for something else")
    if key_id is not None and not (isinstance(key_id, str) and len(key_id) <= _KEY_ID_CHARACTERS):
        raise NotAccepted("its key has no name that can be one")
    return JwtHead(algorithm, key_id)


def key_for(head: JwtHead, keys: Sequence[Mapping[str, Any]]) -> "PyJWK | None":
    """Return the key of a JWKS that a token with this head is verified by; None where there is none, or where it would
    have to be guessed."""
    import jwt

    # With the name of a key there is one; without, there may be one (RFC 7515 4.1.4). Trying several would let a token
    # choose the weakest of them.
    fitting = [key for key in keys if _fits(key, head)]
    if len(fitting) != 1:
        return None
    try:
        found = jwt.PyJWK({**fitting[0]}, head.algorithm)
    except (jwt.PyJWTError, ValueError, TypeError, KeyError):
        # The issuer has published half a key, or one that this machine's OpenSSL does not know: it verifies nothing.
        return None
    return None if found.key_type == "RSA" and found.key.key_size not in _RSA_BITS else found


def _fits(key: Mapping[str, Any], head: JwtHead) -> bool:
    kind, curve = _KEYS[head.algorithm]
    operations = key.get("key_ops", ["verify"])
    return (
        (head.key_id is None or key.get("kid") == head.key_id)
        and key.get("kty") == kind
        and key.get("crv") == curve
        and key.get("alg", head.algorithm) == head.algorithm
        and key.get("use", "sig") == "sig"
        and isinstance(operations, list)
        and "verify" in operations
    )


def verified_claims(token: str, key: "PyJWK", issuer: str, audiences: Sequence[str]) -> Mapping[str, Any]:
    """Return the claims of a token that `key` has signed: of this issuer, for one of these audiences, valid now. Raise
    `NotAccepted`. `key` must be the one of `key_for`."""
    import jwt

    # One algorithm, that of the key: were all of ours named, the token would choose among them.
    try:
        claims = jwt.decode(
            token,
            key,
            algorithms=[key.algorithm_name],
            audience=audiences,
            issuer=issuer,
            leeway=LEEWAY_SECONDS,
            options={"require": ["exp", "iss", "aud", "sub"]},
        )
    except jwt.ExpiredSignatureError:
        raise NotAccepted("it has expired") from None
    except jwt.ImmatureSignatureError:
        raise NotAccepted("it is not valid yet") from None
    except jwt.InvalidIssuerError:
        raise NotAccepted("it is of another issuer") from None
    except jwt.InvalidAudienceError:
        raise NotAccepted("it is for another audience") from None
    except jwt.MissingRequiredClaimError as error:
        raise NotAccepted(f"it has no claim {error.claim!r}") from None
    except (jwt.PyJWTError, ValueError, TypeError, OverflowError, RecursionError):
        raise NotAccepted("its signature is not one of its issuer") from None
    # Only now, behind the signature: what an unsigned token says of itself is of no account.
    # Who holds a token is proven by a key there, which a bearer token comes without (RFC 7800, RFC 9449 7.1).
    if "cnf" in claims:
        raise NotAccepted("it counts only with a proof that is not taken here")
    return claims


def end_of(claims: Mapping[str, Any], longest: float) -> float:
    """Return when verified claims end, in seconds since 1970; at most `longest` seconds from now."""
    return min(float(claims["exp"]) + LEEWAY_SECONDS, time.time() + longest)
