"""Tokens, logins and grants of all nodes, in the database."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from dragoman.cluster.shared_logins import PostgresGrants, PostgresLogins
from dragoman.cluster.shared_tokens import PostgresTokens
from dragoman.cluster.shared_webhooks import PostgresWebhooks
from dragoman.errors import UsageError
from dragoman.gateway.token_types import SCOPES, SessionShare, Token, Unsure, digest_of
from dragoman.gateway.webhook import WEBHOOKS, new_webhook
from dragoman.store.postgres.database import Database
from tests.support.command import call
from tests.support.postgres import empty_database, shared_server

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]

NOWHERE = "postgresql://nobody@/none?host=/nowhere"


@pytest.fixture
async def database() -> AsyncIterator[Database]:
    with empty_database() as url:
        one = Database(url)
        yield one
        await one.close()


@pytest.mark.requirement("CL8")
async def test_a_token_counts_at_every_node_until_it_is_revoked(database: Database) -> None:
    here, there = PostgresTokens(database), PostgresTokens(database)
    secret = await here.make("laptop", ("read", "prompt"), "ada")
    (found,) = await there.valid()
    assert (found.name, found.principal, found.scopes) == ("laptop", "ada", ("read", "prompt"))
    assert found.digest == digest_of(secret.encode())
    assert await there.revoke("laptop")
    assert await PostgresTokens(database).valid() == []
    assert not await here.revoke("laptop")


async def test_only_one_node_makes_the_first_token(database: Database) -> None:
    nodes = [PostgresTokens(database) for _ in range(3)]
    made = await asyncio.gather(*(node.make("default", is_first=True) for node in nodes))
    assert len([secret for secret in made if secret]) == 1
    await nodes[0].revoke("default")
    assert await nodes[1].make("default", is_first=True) == ""
    assert not await nodes[2].never_made()


async def test_a_name_is_free_again_when_its_token_has_expired(database: Database) -> None:
    tokens = PostgresTokens(database)
    await tokens.make("guest", expires=1.0)
    assert await tokens.valid() == []
    await tokens.make("guest")
    with pytest.raises(UsageError, match="there is a token 'guest' already"):
        await tokens.make("guest")


async def test_tokens_are_not_known_while_the_database_is_away() -> None:
    with pytest.raises(Unsure, match="the database cannot be reached"):
        await PostgresTokens(Database(NOWHERE)).valid()


def test_the_command_makes_lists_and_revokes_tokens_of_a_database() -> None:
    with empty_database() as url:
        made = call("tokens", "create", "laptop", "--scopes", "read", "--store", url)
        assert made.code == 0 and len(made.out.strip()) == 43
        assert call("tokens", "create", "laptop", "--store", url).code == 2
        listed = call("tokens", "list", "--store", url)
        assert [line.split()[:3] for line in listed.out.splitlines()[1:]] == [["laptop", "laptop", "read"]]
        assert call("tokens", "revoke", "laptop", "--store", url).code == 0
        assert call("tokens", "revoke", "laptop", "--store", url).code == 1
        assert made.out.strip() not in shared_server().execute("SELECT body FROM dragoman.token", "shared")
    assert call("tokens", "list", "--store", NOWHERE).code == 1


@pytest.mark.requirement("CL8")
async def test_a_login_at_one_node_counts_at_the_others_until_it_ends(database: Database) -> None:
    here, there = PostgresLogins(database), PostgresLogins(database)
    halves = await here.make("token")
    cookie = digest_of(halves.cookie.encode())
    assert await there.token_digest(cookie, halves.page_key) == "token"
    assert await there.token_digest(cookie, "another") is None
    assert await there.is_valid(cookie)
    await there.end(cookie)
    assert not await here.is_valid(cookie)


async def test_a_login_that_was_not_used_for_a_day_is_over(database: Database) -> None:
    logins = PostgresLogins(database)
    halves = await logins.make("token")
    shared_server().execute("UPDATE dragoman.login SET used = used - interval '25 hours'", "shared")
    await logins.touch(digest_of(halves.cookie.encode()))
    assert not await logins.is_valid(digest_of(halves.cookie.encode()))


async def test_what_an_issuer_has_granted_to_a_login_counts_at_every_node_until_it_ends(database: Database) -> None:
    here, there = PostgresGrants(database), PostgresGrants(database)
    lasting, over = (Token(name, name, SCOPES, name, expires=end) for name, end in (("ada", 9e9), ("bob", 1.0)))
    await here.add(lasting, is_login=True)
    await here.add(over, is_login=True)
    assert (await there.find("ada"), await there.find("bob")) == (lasting, None)
    assert there.find_bearer("ada") is None
    assert await here.secret() == await there.secret()


@pytest.mark.requirement("CL8")
async def test_a_share_link_ends_at_every_node_with_the_token_it_was_made_with(database: Database) -> None:
    here, there = PostgresTokens(database), PostgresTokens(database)
    laptop = digest_of((await here.make("laptop", ("read", "prompt"), "ada")).encode())
    await here.make("share-1", ("read",), "share-1", share=SessionShare("sess_1", "ada", laptop), expires=2.0**33)
    await here.make("share-2", ("read",), "share-2", share=SessionShare("sess_1", "ada", "other"), expires=2.0**33)
    assert {token.name: token.share and token.share.session for token in await there.valid()} == {
        "laptop": None,
        "share-1": "sess_1",
        "share-2": "sess_1",
    }
    assert await there.revoke("laptop")
    assert [token.name for token in await here.all()] == ["share-2"]


async def test_links_that_are_over_are_not_kept(database: Database) -> None:
    tokens = PostgresTokens(database)
    await tokens.make("share-1", ("read",), "share-1", share=SessionShare("sess_1", "ada"), expires=1.0)
    await tokens.make("guest", expires=1.0)
    await tokens.make("share-2", ("read",), "share-2", share=SessionShare("sess_1", "ada"), expires=2.0**33)
    assert [token.name for token in await tokens.all()] == ["guest", "share-2"]


async def test_webhooks_are_those_of_their_principal_at_every_node(database: Database) -> None:
    here, there = PostgresWebhooks(database), PostgresWebhooks(database)
    webhook = new_webhook("https://hooks.example.com/", ("turn.ended",), content=True, origins=())
    assert await here.add("ada", webhook)
    assert await there.of("ada") == [webhook]
    assert await there.of("bob") == []
    more = [new_webhook("https://hooks.example.com/", ("turn.ended",), content=False, origins=()) for _ in range(9)]
    added = await asyncio.gather(*(node.add("ada", one) for node, one in zip([here, there] * 5, more, strict=False)))
    assert sum(added) == WEBHOOKS - 1
    assert not await there.remove("bob", webhook.id)
    assert await there.remove("ada", webhook.id)
    assert webhook not in await here.of("ada")
