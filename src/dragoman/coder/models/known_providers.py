"""The providers that are known by name: how each is spoken to, where, and which variable has its key. Data, no code.

A name of this table can be used with a key alone; `[providers.NAME]` of config.toml says otherwise for each part of a
row, and adds providers of the user's own. Addresses and variables are those of the providers' own documentation. Most
of them speak OpenAI's chat completions, so a row is all that they need.

Imported by the commands that look for keys, so it imports nothing of ours.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

# How a model is spoken to: by one of the wire forms, or by a library (`LIBRARY_EXTRAS`).
Family = Literal["openai", "anthropic", "google", "ollama", "compatible", "mistral", "azure", "bedrock", "vertex"]

# `kind` of `[providers.NAME]`.
KINDS: Final[Mapping[str, Family]] = MappingProxyType(
    {
        "openai-chat": "compatible",
        "openai-responses": "openai",
        "anthropic": "anthropic",
        "google": "google",
        "ollama": "ollama",
        "mistral": "mistral",
        "azure": "azure",
        "bedrock": "bedrock",
        "vertex": "vertex",
    }
)
# Families that a library speaks, and the extra of ours that installs it.
LIBRARY_EXTRAS: Final[Mapping[Family, str]] = MappingProxyType({"bedrock": "bedrock", "vertex": "vertex"})


class KnownProvider(NamedTuple):
    """One row. An empty text means that there is none."""

    # As people call it.
    title: str
    family: Family
    # Where it is reached; empty: where the user says, or by its region.
    url: str
    # The environment variables for the key, and for another address.
    key_variable: str
    address_variable: str = ""
    # What the provider's name alone means.
    model: str = ""
    # Its name in the list of prices.
    prices: str = ""
    # Where its models are listed, if not at `/models` behind the address.
    list_url: str = ""
    # Whether the variable for the key is one that people set for other work. Such a key is used where the provider is
    # named: in config.toml, in `dragoman login`, or in the name of a model.
    shares_key: bool = False
    # Whether it can be used without a key of ours: it is on this machine, or finds credentials by itself.
    keyless: bool = False


_CHAT: Final = "compatible"

KNOWN_PROVIDERS: Final[Mapping[str, KnownProvider]] = MappingProxyType(
    {
        "openai": KnownProvider(
            *("OpenAI", "openai", "https://api.openai.com/v1", "OPENAI_API_KEY", "OPENAI_BASE_URL"),
            *("gpt-5.6-sol", "openai"),
        ),
        "anthropic": KnownProvider(
            *("Anthropic", "anthropic", "https://api.anthropic.com", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"),
            *("claude-sonnet-5", "anthropic"),
        ),
        "google": KnownProvider(
            *("Google Gemini", "google", "https://generativelanguage.googleapis.com", "GEMINI_API_KEY"),
            *("GOOGLE_GEMINI_BASE_URL", "gemini-3.8-flash", "google"),
        ),
        "ollama": KnownProvider(
            *("Ollama", "ollama", "http://127.0.0.1:11434/v1", "", "OLLAMA_HOST", "llama3.2"), keyless=True
        ),
        "openrouter": KnownProvider(
            *("OpenRouter", _CHAT, "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
            model="anthropic/claude-sonnet-5",
            prices="openrouter",
        ),
        "mistral": KnownProvider(
            *("Mistral", "mistral", "https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
            model="mistral-medium-latest",
            prices="mistral",
        ),
        "xai": KnownProvider(*("xAI", _CHAT, "https://api.x.ai/v1", "XAI_API_KEY"), model="grok-4.6", prices="x-ai"),
        "groq": KnownProvider(
            *("Groq", _CHAT, "https://api.groq.com/openai/v1", "GROQ_API_KEY"),
            model="openai/gpt-oss-120b",
            prices="groq",
        ),
        "deepseek": KnownProvider(
            *("DeepSeek", _CHAT, "https://api.deepseek.com", "DEEPSEEK_API_KEY"),
            model="deepseek-chat",
            prices="deepseek",
        ),
        "moonshot": KnownProvider(
            *("Moonshot AI", _CHAT, "https://api.moonshot.ai/v1", "MOONSHOT_API_KEY"),
            model="kimi-k3",
            prices="moonshotai",
        ),
        "zai": KnownProvider(
            *("Z.AI", _CHAT, "https://api.z.ai/api/paas/v4", "ZAI_API_KEY"), model="glm-5.2", prices="zai"
        ),
        "cerebras": KnownProvider(
            *("Cerebras", _CHAT, "https://api.cerebras.ai/v1", "CEREBRAS_API_KEY"),
            model="gpt-oss-120b",
            prices="cerebras",
        ),
        "together": KnownProvider(
            *("Together AI", _CHAT, "https://api.together.xyz/v1", "TOGETHER_API_KEY"),
            model="openai/gpt-oss-120b",
            prices="together",
        ),
        "fireworks": KnownProvider(
            *("Fireworks AI", _CHAT, "https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY"),
            model="accounts/fireworks/models/gpt-oss-120b",
            prices="fireworks",
        ),
        "cohere": KnownProvider(
            *("Cohere", _CHAT, "https://api.cohere.ai/compatibility/v1", "CO_API_KEY"),
            model="command-a-03-2025",
            prices="cohere",
            list_url="https://api.cohere.ai/v1/models?page_size=1000&endpoint=chat",
        ),
        "vercel": KnownProvider(*("Vercel AI Gateway", _CHAT, "https://ai-gateway.vercel.sh/v1", "AI_GATEWAY_API_KEY")),
        "huggingface": KnownProvider(
            *("Hugging Face", _CHAT, "https://router.huggingface.co/v1", "HF_TOKEN"), shares_key=True
        ),
        "alibaba": KnownProvider(
            *("Alibaba Cloud", _CHAT, "https://dashscope-intl.aliyuncs.com/compatible-mode/v1", "DASHSCOPE_API_KEY")
        ),
        "nebius": KnownProvider(*("Nebius", _CHAT, "https://api.studio.nebius.com/v1", "NEBIUS_API_KEY")),
        "sambanova": KnownProvider(*("SambaNova", _CHAT, "https://api.sambanova.ai/v1", "SAMBANOVA_API_KEY")),
        "ovhcloud": KnownProvider(
            *("OVHcloud", _CHAT, "https://oai.endpoints.kepler.ai.cloud.ovh.net/v1", "OVHCLOUD_API_KEY"),
            prices="ovhcloud",
        ),
        "heroku": KnownProvider(*("Heroku", _CHAT, "https://us.inference.heroku.com/v1", "HEROKU_INFERENCE_KEY")),
        "meta": KnownProvider(*("Meta", _CHAT, "https://api.meta.ai/v1", "META_API_KEY"), prices="meta"),
        "crusoe": KnownProvider(*("Crusoe", _CHAT, "https://api.inference.crusoecloud.com/v1", "CRUSOE_API_KEY")),
        "azure": KnownProvider(
            *("Azure OpenAI", "azure", "", "AZURE_OPENAI_API_KEY", "AZURE_OPENAI_ENDPOINT"), prices="openai"
        ),
        "bedrock": KnownProvider(
            *("Amazon Bedrock", "bedrock", "", "AWS_BEARER_TOKEN_BEDROCK"), prices="aws", keyless=True
        ),
        "vertex": KnownProvider(*("Google Vertex AI", "vertex", "", ""), prices="google", keyless=True),
    }
)
