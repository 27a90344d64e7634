"""How long a provider asks us to wait is found in every place where one says it, and nonsense counts as nothing."""

import pytest

from dragoman.coder.models.wires.wait_hints import WHOLE_DAY, wait_from_body, wait_from_headers, wait_from_words

NOW = 1_800_000_000.0  # Fri, 15 Jan 2027 08:00:00 GMT
IN_90 = "Fri, 15 Jan 2027 08:01:30 GMT"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after": IN_90}, 90.0),
        ({"retry-after": IN_90, "date": "Fri, 15 Jan 2027 08:01:00 GMT"}, 30.0),
        ({"retry-after": "Fri, 15 Jan 2027 07:00:00 GMT"}, 0.0),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "Fri, 99 Jan 2027 08:01:30 GMT"}, None),
        ({}, None),
    ],
)
def test_retry_after_is_seconds_or_a_date(headers: dict[str, str], seconds: float | None) -> None:
    assert wait_from_headers(headers, NOW) == seconds


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1m2.5s"}, 62.5),
        (
            {
                "x-ratelimit-remaining-requests": "59",
                "x-ratelimit-reset-requests": "6m0s",
                "x-ratelimit-remaining-tokens": "0",
                "x-ratelimit-reset-tokens": "20ms",
            },
            0.02,
        ),
        (
            {
                "anthropic-ratelimit-requests-remaining": "0",
                "anthropic-ratelimit-requests-reset": "2027-01-15T08:00:10Z",
                "anthropic-ratelimit-input-tokens-remaining": "0",
                "anthropic-ratelimit-input-tokens-reset": "2027-01-15T08:00:40Z",
                "anthropic-ratelimit-output-tokens-remaining": "9000",
                "anthropic-ratelimit-output-tokens-reset": "2027-01-15T09:00:00Z",
            },
            40.0,
        ),
        ({"anthropic-ratelimit-unified-reset": str(int(NOW) + 3600)}, 3600.0),
        ({"x-ratelimit-reset": str((int(NOW) + 5) * 1000)}, 5.0),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "12"}, 12.0),
        ({"ratelimit-remaining": "0", "ratelimit-reset": "30"}, 30.0),
        ({"x-ratelimit-reset-requests": "9s", "x-ratelimit-reset-tokens": "4s"}, 4.0),
        ({"x-ratelimit-remaining-requests": "12", "x-ratelimit-reset-requests": "9s"}, None),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "tomorrow"}, None),
    ],
)
def test_the_reset_of_a_limit_counts_where_it_is_used_up(headers: dict[str, str], seconds: float | None) -> None:
    assert wait_from_headers(headers, NOW) == seconds


def google(*details: object) -> object:
    return {"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "slow", "details": list(details)}}


RETRY_INFO = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.07s"}
PER_DAY = {"violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]}
PER_MINUTE = {"violations": [{"quotaId": "GenerateContentInputTokensPerModelPerMinute"}]}


@pytest.mark.parametrize(
    ("body", "seconds"),
    [
        (google(RETRY_INFO), 34.07),
        (google(PER_MINUTE, RETRY_INFO), 34.07),
        (google(PER_DAY, RETRY_INFO), WHOLE_DAY),
        ([google(RETRY_INFO)], 34.07),
        (google({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "never"}), None),
        (google(7, None, {"violations": 3}), None),
        ({"error": {"message": "Rate limit reached. Please try again in 11.054s. Visit …"}}, 11.054),
        ({"error": {"message": "too many", "details": "none"}}, None),
        ("try again in 5s", 5.0),
        (None, None),
        (b"", None),
    ],
)
def test_a_body_says_it_in_fields_or_in_words(body: object, seconds: float | None) -> None:
    assert wait_from_body(body) == seconds


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        ("Please try again in 1m2.5s.", 62.5),
        ("Please try again in 6ms", 0.006),
        ("Please retry after 20 seconds.", 20.0),
        ("try again in 2 minutes", 120.0),
        ("Try again in 7m12s", 432.0),
        ("try again later", None),
        ("trying again is in vain", None),
    ],
)
def test_words_are_read(words: str, seconds: float | None) -> None:
    assert wait_from_words(words) == pytest.approx(seconds)
