"""The words in which model servers say why they refuse a request, and what each of them means. Pure.

A status says little: 400 stands for a conversation that is too long, for a picture that cannot be read and for a wrong
setting, and the same overflow is a 400, a 413, a 422, a 500 or an event in the stream. So the sentence is read. Each
row has an example that a server has really sent; a test sends all of them.

The first row that matches counts. Rows for one server stand before rows that guess, and only a guess may match more
than its example: what is taken for too long by mistake costs a summary, what is taken for invalid costs the prompt.
"""

import re
from collections.abc import Iterable
from typing import Final, Literal, NamedTuple

Meaning = Literal[
    # More tokens than the model can see: a shorter conversation helps.
    "context_full",
    # The same, guessed from words that no row knows.
    "probably_full",
    # More bytes than the server accepts: fewer media help, and else a shorter conversation.
    "request_too_large",
    # More tokens than the account may send in a minute. Waiting does not help, as this one request has more.
    "minute_limit",
    # An image, a sound or a document.
    "media",
    # The account, the tools or a setting: leaving out a message or an image would not help.
    "setting",
]


class ErrorWording(NamedTuple):
    """Words of a server. `example` is one string of the error it sends: its sentence, or its code."""

    server: str
    meaning: Meaning
    pattern: str
    example: str
    status: int = 400


WORDINGS: Final = (
    # -- a limit that counts minutes ---------------------------------------------------------------------------------
    ErrorWording(
        "groq",
        "minute_limit",
        r"request too large .*(?:tokens per min|\btpm\b)",
        "Request too large for model `llama-3.3-70b-versatile` in organization `org_x` service tier `on_demand` on "
        "tokens per minute (TPM): Limit 6000, Requested 9000, please reduce your message size and try again.",
        413,
    ),
    ErrorWording(
        "openai",
        "minute_limit",
        r"request too large .*(?:tokens per min|\btpm\b)",
        "Request too large for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Requested 51000. The "
        "input or output tokens must be reduced in order to run successfully.",
        429,
    ),
    # -- too many tokens ---------------------------------------------------------------------------------------------
    ErrorWording(
        "anthropic", "context_full", r"prompt is too long", "prompt is too long: 210000 tokens > 200000 maximum"
    ),
    ErrorWording(
        "anthropic",
        "context_full",
        r"input length and `max_tokens` exceed",
        "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length or "
        "`max_tokens` and try again",
    ),
    ErrorWording("openai", "context_full", r"^context_length_exceeded$", "context_length_exceeded"),
    ErrorWording(
        "openai",
        "context_full",
        r"exceeds the context window",
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
    ),
    ErrorWording(
        "openai",
        "context_full",
        r"'(?:input|messages)\[\d+\]\.(?:content|output)[^']*': string too long",
        "Invalid 'input[4].output': string too long. Expected a string with maximum length 10485760, but got a string "
        "with length 12000000 instead.",
    ),
    ErrorWording(
        "azure",
        "context_full",
        r"input tokens exceed the configured limit",
        "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 277798 tokens.",
    ),
    ErrorWording(
        "openrouter",
        "context_full",
        r"maximum context length",
        "This endpoint's maximum context length is 131072 tokens. However, you requested about 140000 tokens (139000 "
        'of text input, 1000 in the output). Please reduce the length of either one, or use the "middle-out" '
        "transform to compress your prompt automatically.",
    ),
    ErrorWording(
        "deepseek",
        "context_full",
        r"maximum context length",
        "This model's maximum context length is 65536 tokens. However, you requested 70000 tokens (66000 in the "
        "messages, 4000 in the completion). Please reduce the length of the messages or completion.",
    ),
    ErrorWording(
        "vllm",
        "context_full",
        r"longer than the maximum model length",
        "The decoder prompt (length 40000) is longer than the maximum model length of 32768. Make sure that "
        "`max_model_len` is no smaller than the number of text tokens.",
    ),
    ErrorWording(
        "vllm",
        "context_full",
        r"context length is only",
        "You passed 202753 input tokens and requested 0 output tokens. However, the model's context length is only "
        "202752 tokens, resulting in a maximum input length of 202752 tokens.",
    ),
    ErrorWording(
        "sglang",
        "context_full",
        r"longer than the model's context length",
        "The input (40000 tokens) is longer than the model's context length (32768 tokens).",
    ),
    ErrorWording(
        "tgi",
        "context_full",
        r"`inputs` (?:tokens \+ `max_new_tokens` )?must (?:be <=|have less than)",
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens and "
        "1024 `max_new_tokens`",
        422,
    ),
    ErrorWording(
        "tgi",
        "context_full",
        r"`inputs` (?:tokens \+ `max_new_tokens` )?must (?:be <=|have less than)",
        "Input validation error: `inputs` must have less than 4095 tokens. Given: 5000",
        422,
    ),
    ErrorWording("llama.cpp", "context_full", r"^exceed_context_size_error$", "exceed_context_size_error"),
    ErrorWording(
        "llama.cpp",
        "context_full",
        r"exceeds the available context size",
        "request (263244 tokens) exceeds the available context size (190208 tokens), try increasing it",
    ),
    ErrorWording(
        "llama.cpp", "context_full", r"context size has been exceeded", "Context size has been exceeded.", 500
    ),
    ErrorWording(
        "lm studio",
        "context_full",
        r"tokens when context the overflows",
        "Trying to keep the first 4973 tokens when context the overflows. However, the model is loaded with context "
        "length of only 4096 tokens, which is not enough.",
    ),
    ErrorWording(
        "lm studio",
        "context_full",
        r"greater than the context length",
        "The number of tokens to keep from the initial prompt is greater than the context length. Try to load the "
        "model with a larger context length, or provide a shorter input.",
    ),
    ErrorWording(
        "ollama",
        "context_full",
        r"prompt too long; exceeded (?:max )?context length",
        "prompt too long; exceeded max context length by 4 tokens",
    ),
    ErrorWording(
        "ollama",
        "context_full",
        r"input length exceeds the context length",
        "the input length exceeds the context length",
    ),
    ErrorWording(
        "mistral",
        "context_full",
        r"too large for model with \d+ maximum context length",
        "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
    ),
    ErrorWording(
        "google",
        "context_full",
        r"input token count.*exceeds the maximum",
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    ),
    ErrorWording(
        "google",
        "context_full",
        r"input token count is \d+ but",
        "Unable to submit request because the input token count is 1200000 but model only supports up to 1048576. "
        "Reduce the input token count and try again.",
    ),
    ErrorWording(
        "bedrock", "context_full", r"input is too long for requested model", "Input is too long for requested model."
    ),
    ErrorWording(
        "xai",
        "context_full",
        r"maximum prompt length is \d+",
        "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
    ),
    ErrorWording(
        "copilot",
        "context_full",
        r"prompt token count of \d+ exceeds the limit",
        "prompt token count of 141361 exceeds the limit of 128000",
    ),
    ErrorWording("copilot", "context_full", r"^model_max_prompt_tokens_exceeded$", "model_max_prompt_tokens_exceeded"),
    ErrorWording(
        "github models",
        "context_full",
        r"request body too large for .* max size: \d+ tokens",
        "Request body too large for gpt-4o model. Max size: 8000 tokens.",
        413,
    ),
    ErrorWording(
        "minimax",
        "context_full",
        r"context window exceeds limit",
        "invalid params, context window exceeds limit (2013)",
    ),
    ErrorWording(
        "moonshot",
        "context_full",
        r"exceeded model token limit",
        "Invalid request: Your request exceeded model token limit: 262144 (requested: 310000)",
    ),
    ErrorWording(
        "qwen",
        "context_full",
        r"range of input length should be",
        "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 129024]",
    ),
    ErrorWording("zhipu", "context_full", r"prompt 超长", "Prompt 超长"),
    ErrorWording(
        "volcengine",
        "context_full",
        r"exceed max message tokens",
        "Total tokens of image and text exceed max message tokens.",
    ),
    ErrorWording(
        "cohere",
        "context_full",
        r"too many tokens(?!, please wait| per )",
        "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 5000.",
    ),
    ErrorWording(
        "cloudflare",
        "context_full",
        r"exceeded this model context window limit",
        "The estimated number of input and maximum output tokens (40000) exceeded this model context window limit "
        "(32000).",
        413,
    ),
    ErrorWording(
        "litellm", "context_full", r"contextwindowexceedederror", "litellm.ContextWindowExceededError: too long"
    ),
    # -- too many bytes ----------------------------------------------------------------------------------------------
    ErrorWording("anthropic", "request_too_large", r"^request_too_large$", "request_too_large", 413),
    ErrorWording(
        "anthropic",
        "request_too_large",
        r"request exceeds the maximum (?:allowed )?(?:size|number of bytes)",
        "Request exceeds the maximum size",
        413,
    ),
    ErrorWording(
        "bedrock",
        "request_too_large",
        r"too many total text bytes",
        "messages: too many total text bytes: 26000000 > 25000000",
    ),
    ErrorWording(
        "google",
        "request_too_large",
        r"request payload size exceeds",
        "Request payload size exceeds the limit: 20971520 bytes.",
    ),
    ErrorWording(
        "nginx",
        "request_too_large",
        r"request entity too large",
        "<html><head><title>413 Request Entity Too Large</title></head></html>",
        413,
    ),
    ErrorWording(
        "tgi",
        "request_too_large",
        r"failed to buffer the request body",
        "Failed to buffer the request body: length limit exceeded",
        413,
    ),
    # -- images and other media --------------------------------------------------------------------------------------
    ErrorWording(
        "openai",
        "media",
        r"^(?:invalid_(?:base64_)?image\w*|image_\w+|unsupported_image_media_type|empty_image_file"
        r"|failed_to_download_image)$",
        "image_parse_error",
    ),
    ErrorWording(
        "openai",
        "media",
        r"unsupported image|not represent a valid image",
        "You uploaded an unsupported image. Please make sure your image is valid.",
    ),
    ErrorWording("anthropic", "media", r"could not process (?:image|pdf|document)", "Could not process image"),
    ErrorWording(
        "anthropic",
        "media",
        r"\.(?:image|document)\.source\b",
        "messages.0.content.1.image.source.base64.data: At least one of the image dimensions exceed max allowed size: "
        "8000 pixels",
    ),
    ErrorWording(
        "anthropic",
        "media",
        r"image exceeds [\d.]+ mb",
        "messages.0.content.1: image exceeds 5 MB maximum: 6000000 bytes > 5242880 bytes",
    ),
    ErrorWording(
        "google",
        "media",
        r"unable to process input (?:image|audio|video)|provided image is not valid",
        "Unable to process input image. Please retry or report in the developer forum.",
    ),
    ErrorWording(
        "openrouter",
        "media",
        r"no endpoints found that support (?:input )?(?:image|audio|video|file|pdf)",
        "No endpoints found that support image input",
        404,
    ),
    ErrorWording(
        "ollama",
        "media",
        r"failed to process inputs: image",
        "failed to process inputs: image: unknown format",
        500,
    ),
    ErrorWording(
        "ollama",
        "media",
        r"missing data required for image input",
        "this model is missing data required for image input",
        500,
    ),
    ErrorWording(
        "llama.cpp",
        "media",
        r"(?:image|audio) input is not supported",
        "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj",
        500,
    ),
    ErrorWording("llama.cpp", "media", r"failed to load image or audio", "Failed to load image or audio file"),
    ErrorWording(
        "lm studio",
        "media",
        r"does not support images?\b",
        "Model does not support images. Please use a model that does.",
    ),
    ErrorWording(
        "vllm", "media", r"cannot identify image file", "cannot identify image file <_io.BytesIO object at 0x7f>", 500
    ),
    ErrorWording("vllm", "media", r"is not a multimodal model", "qwen3 is not a multimodal model"),
    ErrorWording(
        "vllm",
        "media",
        r"at most \d+ (?:image|audio|video)",
        "At most 1 image(s) may be provided in one request.",
    ),
    ErrorWording(
        "deepseek",
        "media",
        r"unknown variant `?(?:image_url|input_audio|file)\b",
        "Failed to deserialize the JSON body into the target type: messages[1]: unknown variant `image_url`, expected "
        "`text` at line 1 column 400",
        422,
    ),
    ErrorWording("mistral", "media", r"image input is not enabled", "Image input is not enabled for this model"),
    # -- neither the conversation nor its media ----------------------------------------------------------------------
    ErrorWording(
        "anthropic",
        "setting",
        r"^(?:max_(?:output_|completion_)?tokens|tools|tool_choice|parallel_tool_calls|functions|thinking|reasoning"
        r"|stream|system|instructions|temperature|top_[kp]|metadata|model|include|store|service_tier|prompt_cache\w*"
        r"|output_config|betas|generation_config)[.:\[]",
        "max_tokens: 64000 > 8192, which is the maximum allowed number of output tokens for this model",
    ),
    ErrorWording("anthropic", "setting", r"usage limit", "You have reached your specified API usage limits."),
    ErrorWording(
        "anthropic", "setting", r"organization (?:has been disabled|must be)", "This organization has been disabled."
    ),
    ErrorWording(
        "anthropic",
        "setting",
        r"long context beta",
        "The long context beta is not yet available for this subscription.",
    ),
    ErrorWording("openai", "setting", r"\bbilling\b", "Your account is not active, please check your billing details."),
    ErrorWording(
        "openai",
        "setting",
        r"(?:unsupported|unknown) parameter",
        "Unsupported parameter: 'max_tokens' is not supported with this model.",
    ),
    ErrorWording("google", "setting", r"location is not supported", "User location is not supported for the API use."),
    ErrorWording("ollama", "setting", r"does not support tools", "registry.ollama.ai/library/x does not support tools"),
    ErrorWording(
        "ollama", "setting", r"does not support thinking|thinking is not supported", "x does not support thinking"
    ),
    # -- words that no row knows -------------------------------------------------------------------------------------
    ErrorWording(
        "any other",
        "media",
        r"\b(?:images?|image_url|vision|multimodal|audio|pdf)\b.{0,80}"
        r"\b(?:not support|unsupported|invalid|unknown|cannot|could not|unable|fail)"
        r"|\b(?:not support|unsupported|invalid|unknown|cannot|could not|unable|fail)\w*\b.{0,80}"
        r"\b(?:images?|image_url|vision|multimodal|audio|pdf)\b",
        "The model cannot handle the attached image",
    ),
    ErrorWording(
        "any other",
        "probably_full",
        r"\bcontext[ _-]?(?:size|length|window|limit)\b|maximum number of tokens|input is too long",
        "The context window of 4096 tokens is full",
    ),
    ErrorWording(
        "any other",
        "probably_full",
        r"^(?!.*(?:max_\w*tokens|(?:output|completion) tokens|\brate\b|quota|per (?:min|hour|day)))(?=.*\btokens?\b)"
        r".*\b(?:prompt|input|conversation|messages?|history|request|tokens?)\b.{0,80}"
        r"\b(?:too (?:long|large|many)|exceed(?:s|ed|ing)?|(?:longer|greater|more) than|maximum|limit)\b",
        "Your prompt of 5000 tokens is more than the 4096 that this deployment allows",
    ),
)

_PATTERNS: Final = tuple((re.compile(wording.pattern, re.IGNORECASE), wording.meaning) for wording in WORDINGS)


def meaning_of(strings: Iterable[str], possible: frozenset[Meaning]) -> Meaning | None:
    """Return what the strings of an error mean, if that is one of the `possible` meanings; None: it is not known."""
    texts = [" ".join(string.split()) for string in strings]
    for pattern, meaning in _PATTERNS:
        if meaning in possible and any(pattern.search(text) for text in texts):
            return meaning
    return None
