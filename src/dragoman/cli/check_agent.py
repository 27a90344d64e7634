"""`dragoman check agent`: the agent is started for each row, or stands behind an address."""

import argparse
import os
import tempfile
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING

from dragoman.cli.errors import CommandError, print_notice, warn_about_plain_http

if TYPE_CHECKING:
    from dragoman.conformance.identities import CheckIdentity, IdentityRole
    from dragoman.conformance.run import CheckPlan, CheckReport, RowResult
    from dragoman.conformance.subject import Subject


async def judge_agent(
    arguments: argparse.Namespace, plan: "CheckPlan", on_result: "Callable[[RowResult, int], None]"
) -> "CheckReport":
    """Return the report on the agent. Raise `CommandError` for options that mean nothing."""
    from dragoman.conformance.connection import CheckLimits
    from dragoman.conformance.run import check
    from dragoman.conformance.trial import DEFAULT_PROMPT, DEFAULT_SLOW_PROMPT, CheckSettings

    _check_target(arguments)
    with tempfile.TemporaryDirectory(prefix="dragoman-check-") as folder, _model(arguments) as variables_of_model:
        cwd = os.path.realpath(arguments.cwd or folder)
        settings = CheckSettings(
            cwd,
            CheckLimits(answer=arguments.timeout, turn=max(60.0, arguments.timeout)),
            arguments.prompt or DEFAULT_PROMPT,
            arguments.slow_prompt or "",
            arguments.permission_prompt or "",
            arguments.login or "",
            identities_of(arguments, "client"),
        )
        if variables_of_model:
            file = os.path.join(cwd, "dragoman-check.txt")
            writes = f"Create the file {file} with the word hello."
            settings = settings._replace(
                slow_prompt=settings.slow_prompt or DEFAULT_SLOW_PROMPT,
                permission_prompt=settings.permission_prompt or writes,
            )
        return await check(subject_of(arguments, variables_of_model), plan, settings, on_result)


def _model(arguments: argparse.Namespace) -> "AbstractContextManager[Mapping[str, str]]":
    """Return what runs the model on loopback, if one is asked for; its value are the variables for the agent."""
    if not arguments.model_server:
        return nullcontext({})
    if arguments.url is not None:
        raise CommandError("--model-server is for an agent that is started: one behind an address has its own")

    @contextmanager
    def running() -> "Generator[Mapping[str, str]]":
        from dragoman.conformance.model_server import CheckModelServer

        with CheckModelServer() as server:
            yield server.variables()

    return running()


def identities_of(arguments: argparse.Namespace, role: "IdentityRole") -> "tuple[CheckIdentity, ...]":
    """Return whom `check` passes for. Raise `CommandError` for a name that it does not have."""
    from dragoman.conformance.identities import find_identities, names_of

    name = getattr(arguments, "as")
    if name is None:
        return ()
    found = find_identities(name, role)
    if not found:
        raise CommandError(f"--as {name}: there is no such {role}; there are {', '.join(names_of(role))}")
    wanted = arguments.protocol
    if wanted is not None and all(one.version != wanted for one in found):
        raise CommandError(f"--as {name}: it speaks version {found[0].version}, not {wanted}")
    for one in found:
        print_notice(f"passes for {name} in version {one.version}, {one.origin}: {one.source}")
    return found


def _check_target(arguments: argparse.Namespace) -> None:
    if arguments.command_given is not None and arguments.url is not None:
        raise CommandError("a URL or -- CMD, not both")
    if arguments.command_given is None and arguments.url is None:
        raise CommandError("which agent? Write its command after --, such as: dragoman check agent -- gemini --acp")
    if arguments.command_given == []:
        raise CommandError("which command? Write it after the --, such as: -- gemini --acp")
    if arguments.url is not None and "://" not in arguments.url:
        raise CommandError(f"{arguments.url!r} is no address; the command of an agent stands behind --")
    if arguments.cwd is not None and not os.path.isdir(arguments.cwd):
        raise CommandError(f"{arguments.cwd}: there is no such folder")


def subject_of(arguments: argparse.Namespace, more: "Mapping[str, str]") -> "Subject":
    """Return the agent that is meant; one that is started gets these variables, and those of `--env` before them."""
    from dragoman.conformance.subject import AddressSubject, StartedSubject

    if arguments.url is None:
        # Where the user is: the command may name files from there. Sessions have the folder of `--cwd`.
        return StartedSubject(arguments.command_given, os.getcwd(), {**more, **model_words(arguments.env, more)})
    from dragoman.transports.remote import transport_for

    url = arguments.url
    token = address_token(arguments, url)
    ca_file = os.path.expanduser(arguments.ca_file or "")
    return AddressSubject(url, lambda: transport_for(url, token, ca_file=ca_file))


def address_token(arguments: argparse.Namespace, url: str) -> str | None:
    """Return the token for an address, if the user has one. Raise `CommandError` for what is wrong with either."""
    from dragoman.errors import UsageError
    from dragoman.transports.remote import transport_for
    from dragoman.transports.token import read_token

    try:
        path = arguments.token_file
        token = os.environ.get("DRAGOMAN_TOKEN") if path is None else read_token(os.path.expanduser(path))
        ca_file = os.path.expanduser(arguments.ca_file or "")
        transport_for(url, token, ca_file=ca_file)  # what is wrong with it is said before anything is sent
    except UsageError as error:
        raise CommandError(str(error)) from None
    if token:
        warn_about_plain_http(url, insecure=arguments.insecure)
    return token


def model_words(given: Sequence[str], more: "Mapping[str, str]") -> dict[str, str]:
    """Return the variables of `--env`; `{model}` in one stands for the address of the model on loopback."""
    url = more.get("ANTHROPIC_BASE_URL", "")
    return {name: value.replace("{model}", url) if url else value for name, value in variables(given).items()}


def variables(given: Sequence[str]) -> dict[str, str]:
    """Return the variables of `--env`; one without a value has that of ours."""
    found: dict[str, str] = {}
    for one in given:
        name, equals, value = one.partition("=")
        if not equals and name not in os.environ:
            raise CommandError(f"--env {name}: there is no such variable; write {name}=VALUE")
        found[name] = value if equals else os.environ[name]
    return found
