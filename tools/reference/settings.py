"""Settings, variables, files and exit codes. A key without a sentence here stops the build; so does one too many."""

from typing import Final

from dragoman.coder.models.known_providers import KINDS, KNOWN_PROVIDERS
from tools.reference.markdown import table

PROVIDER_KEYS: Final = {
    "kind": f"how it is spoken to: {', '.join(f'`{kind}`' for kind in KINDS)}; if not given, as its name says",
    "base_url": "where it listens; needed for a provider of your own",
    "headers": "what is sent with every request, a table; `$NAME` is taken from your environment",
    "api_version": "the date of Azure's older API",
    "region": "the region of `bedrock` and `vertex`",
    "project": "the project of `vertex`",
    "api_key_env": "the environment variable that holds its key; `dragoman login NAME` keeps one without it",
    "model": "the model that is meant when only the provider can be used",
    "models": 'its models one by one: `[providers.NAME.models."MODEL"]`, with any of the keys below',
    "images": "whether its models look at pictures",
    "documents": "whether its models look at PDF documents",
    "web_search": "whether the provider searches the web for its models: `openai`, `anthropic` and `google` alone",
    "window": "how many tokens its models see",
    "max_output": "how many tokens one answer has at most; sent with each request",
    "thought_levels": "how hard its models can be told to think, a list: some of `off`, `minimal`, `low`, `medium`, "
    "`high`, `xhigh`, `max`",
    "prices": "dollars for a million tokens, a table: `input`, `output`, `cache_read`, `cache_write`",
}
MCP_KEYS: Final = {
    "type": "`stdio`, `http` or `sse`; found by itself from `command` or `url`",
    "command": "the program to start (`stdio`)",
    "args": "its arguments, a list of texts",
    "env": "its variables, a table; `$NAME` is taken from your environment",
    "url": "where it listens (`http`, `sse`)",
    "headers": "what is sent with every request, a table; `$NAME` is taken from your environment",
}
LANGUAGE_SERVER_KEYS: Final = {
    "command": "the program and its arguments, a list of texts; a path has to be a whole one",
    "files": "names of files that it is for, a list of patterns: `*.rb`",
    "language": "the language of these files, as the protocol calls it; if not given, by the ending",
    "enabled": "`false` turns it off",
}
REGISTRY_TOP_KEYS: Final = {
    "$schema": "for editors; not read",
    "servers": "the agents: an object by name, or a list of objects with a `name`",
    "defaultServer": "the agent that `dragoman run` and `dragoman chat` start without `--agent`",
    "defaultAgent": "for every agent: see below",
    "mcpServers": "for every agent: see below",
    "permissionPolicy": "for every agent: see below",
    "nonInteractivePolicy": "for every agent: see below",
    "permissions": "for every agent: see below",
}
REGISTRY_KEYS: Final = {
    "name": "its name, where `servers` is a list",
    "command": "the program; not needed for an agent that is known by name",
    "url": "the address of a gateway in its place: `https://`, `http://`, `wss://` or `ws://`",
    "token": "the token for that address, as `$NAME`",
    "tokenFile": "or a file that holds it, which only you can read",
    "caFile": "the authorities, in PEM, that the server's certificate is checked against, instead of this machine's",
    "args": "its arguments; `$NAME` is taken from your environment",
    "env": "variables for it; secrets of your environment reach it only when they are named here",
    "cwd": "where it is started, relative to the file; if not given where you are, a project's agent in its folder",
    "dialect": "how it speaks, where that is not the protocol's own: {dialects}",
    "startupTimeoutMs": "how long `initialize` may take",
    "requestTimeoutMs": "how long an answer may take, but for prompts",
    "timeoutMs": "another name of `requestTimeoutMs`",
    "promptIdleTimeoutMs": "how long a turn may be silent",
    "permissionPolicy": "`prompt` (ask, the default), `auto-approve`, `deny`",
    "nonInteractivePolicy": "`mode` is `reject_all` (the default) or `accept_all`: the answer without a user to ask",
    "permissions": "lists `allow`, `ask`, `reject` of rules (`kind`, `path`, `command`); reject beats ask beats allow",
    "autoStart": "whether `AgentRegistry.start` starts it",
    "description": "a line for `dragoman agents list`",
    "maxRecoverableRestarts": "how often in a row it is started again after it has died",
    "process": "behind `dragoman serve`: `shared` (one process for a connection's sessions) or `session` (one each)",
    "idleTimeoutMs": "`dragoman serve` stops it after so long with nothing to do, if it can resume; 0: never",
    "defaultAgent": "kept for clients that have such a key",
    "mcpServers": "MCP servers it is given with every session",
    "capabilities": "what is lent to it, true or false: `fs`, `terminal`, `elicitation`",
}
ENVIRONMENT: Final = {
    "DRAGOMAN_HOME": "one folder for everything that is kept; without it there are the platform's four",
    "DRAGOMAN_LOG": "`debug`, `info`, `warning` or `error`: log what a command does to stderr; never content or keys",
    "DRAGOMAN_LOG_FILE": "a file for the lines of `DRAGOMAN_LOG` and `--log-level`, in place of stderr",
    "DRAGOMAN_TOKEN": "the token of `dragoman connect`, where `--token-file` is not given",
    "OPENAI_API_KEY": "the key of `openai`",
    "ANTHROPIC_API_KEY": "the key of `anthropic`",
    "GEMINI_API_KEY": "the key of `google`",
    "OPENAI_BASE_URL": "where `openai` is reached, ending in `/v1` as a rule; `base_url` in `config.toml` comes first",
    "ANTHROPIC_BASE_URL": "where `anthropic` is reached, without `/v1`; `base_url` in `config.toml` comes first",
    "GOOGLE_GEMINI_BASE_URL": "where `google` is reached, without a version; `base_url` in `config.toml` comes first",
    **{
        known.key_variable: f"the key of `{name}`" + (", where that is named" if known.shares_key else "")
        for name, known in KNOWN_PROVIDERS.items()
        if known.key_variable and name not in ("openai", "anthropic", "google")
    },
    "AZURE_OPENAI_ENDPOINT": "where `azure` is reached; `base_url` in `config.toml` comes first",
    "OPENAI_API_VERSION": "the date of Azure's older API, to use that; `api_version` in `config.toml` comes first",
    "AWS_REGION": "where `bedrock` is asked; `region` in `config.toml` comes first, `AWS_DEFAULT_REGION` last",
    "GOOGLE_CLOUD_LOCATION": "where `vertex` is asked; `region` in `config.toml` comes first",
    "GOOGLE_CLOUD_PROJECT": "the project of `vertex`; `project` in `config.toml` comes first",
    "OLLAMA_HOST": "where Ollama listens; setting it makes Ollama the model where there is no key",
    "LLM_PROVIDER": "one provider by name; then `NAME_API_KEY`, `NAME_BASE_URL` and `NAME_MODEL` are read too",
    "DRAGOMAN_TREE": "set by us for every program that is started, to find it again; not for you to set",
    "NO_COLOR": "no colours on the terminal",
    "XDG_CONFIG_HOME": "where our config folder is; `~/.config` if it is no absolute path",
    "XDG_DATA_HOME": "where our data folder is; else `~/.local/share`",
    "XDG_STATE_HOME": "where our state folder is; else `~/.local/state`",
    "XDG_CACHE_HOME": "where our cache folder is; else `~/.cache`. On macOS all four are in `~/Library` without these",
}
RUN_EXITS: Final = (
    ("0", "the agent is done"),
    ("1", "the answer could not be written"),
    ("2", "wrong usage"),
    ("3", "the agent refused"),
    ("4", "a limit: tokens, model calls in one turn, or what may be spent"),
    ("5", "done, but something was not allowed"),
    ("6", "the agent failed, or could not be started"),
    ("124", "not done after `--timeout`"),
    ("130", "cancelled, by Ctrl-C or a signal"),
)


def settings_page() -> str:
    from dragoman.cli.settings import KEYS
    from dragoman.client.registry_file import _ENTRY, _TOP
    from dragoman.coder.language_servers.known import KEYS as SERVER_KEYS
    from dragoman.coder.mcp.config import _KEYS
    from dragoman.coder.models.provider_config import PROVIDER_KEYS as KNOWN_PROVIDER_KEYS
    from dragoman.dialects.vendors.named import NAMES

    words = {int: "a whole number", str: "text", bool: "true or false", list: "a list of texts", float: "dollars"}
    config = [
        (f"`{name}`", words[key.kind], f"`{key.default}`" if key.default else "", key.about)
        for name, key in KEYS.items()
    ]
    entries = {
        name: about.format(dialects=", ".join(f"`{one}`" for one in NAMES)) for name, about in REGISTRY_KEYS.items()
    }
    check("config.toml [providers.NAME]", set(PROVIDER_KEYS), set(KNOWN_PROVIDER_KEYS))
    check("config.toml [mcp.NAME]", set(MCP_KEYS), set().union(*_KEYS.values()))
    check("config.toml [language_servers.NAME]", set(LANGUAGE_SERVER_KEYS), set(SERVER_KEYS))
    check("acp.json", set(REGISTRY_TOP_KEYS), set(_TOP))
    check("acp.json servers", set(REGISTRY_KEYS), set(_ENTRY))
    parts = [
        "# Settings, variables and exit codes",
        "## config.toml",
        (
            "In the config folder. The command line counts first, then the environment (`DRAGOMAN_MODEL` for "
            "`model` and so on), then this file. `dragoman config show` says what holds, and why. A key that is not "
            "known is an error. `spend.turn` is `turn` in the table `[spend]`, and `DRAGOMAN_SPEND_TURN`; a list in a "
            "variable has commas between its texts."
        ),
        table(("key", "is", "if not set", "what it is for"), config),
        "### [providers.NAME]",
        table(("key", "what it is for"), [(f"`{name}`", about) for name, about in PROVIDER_KEYS.items()]),
        "### [mcp.NAME]",
        table(("key", "what it is for"), [(f"`{name}`", about) for name, about in MCP_KEYS.items()]),
        "### [language_servers.NAME]",
        table(("key", "what it is for"), [(f"`{name}`", about) for name, about in LANGUAGE_SERVER_KEYS.items()]),
        "## acp.json",
        (
            "The agents that `dragoman run --agent NAME` knows: in the config folder, and in a project (`acp.json` or "
            "`.dragoman/acp.json`) once it is trusted. An unknown key, or a value of the wrong kind, is an error that "
            "names the line."
        ),
        table(("key", "what it is for"), [(f"`{name}`", about) for name, about in REGISTRY_TOP_KEYS.items()]),
        "### A server",
        table(("key", "what it is for"), [(f"`{name}`", about) for name, about in entries.items()]),
        "## Environment variables",
        table(("variable", "what it is for"), [(f"`{name}`", about) for name, about in ENVIRONMENT.items()]),
        "## Our files",
        "With `$DRAGOMAN_HOME` all of them are there, and nowhere else.",
        table(
            ("name", "what it is"),
            [
                ("config: `config.toml`", "settings, yours to write"),
                ("config: `acp.json`", "agents, yours to write; `dragoman agents add` writes it too"),
                ("data: `credentials.toml`", "keys that `dragoman login` kept; readable by you alone"),
                ("config: `AGENTS.md`", "notes for every session of yours"),
                ("config: `commands/NAME.md`", "slash commands of your own"),
                ("data: `sessions/`", "one file a session, and an index that can be thrown away"),
                ("state: `log/`", "failures of our own, and decisions about other agents"),
                ("state: `history`", "what was typed in `chat`"),
                ("cache: `models/`", "what providers list; can be thrown away"),
                ("data: `spending.sqlite`", "what all sessions of a day have cost, in dollars"),
                ("data: `trust.json`", "the projects you have trusted"),
                ("data: `gateway/`", "hashes of tokens, and whose sessions are whose"),
            ],
        ),
        "## Exit codes",
        "Of `dragoman run`:",
        table(("code", "means"), RUN_EXITS),
        (
            "Every other command: 0 done, 1 it could not be done, 2 wrong usage, 130 interrupted. A sentence on stderr "
            "says why."
        ),
    ]
    return "\n\n".join(parts) + "\n"


def check(what: str, described: set[str], there: set[str]) -> None:
    if described != there:
        raise LookupError(f"tools/reference/settings.py and the code differ about {what}: {sorted(described ^ there)}")
