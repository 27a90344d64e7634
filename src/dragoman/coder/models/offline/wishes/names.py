"""Is this word a path, a name, an address? And where do the words "in the python files" lead?"""

import re
from typing import Final

from dragoman.coder.models.offline.wishes.intents import Where
from dragoman.coder.models.offline.wishes.phrases import Phrase

KNOWN_FILES: Final = frozenset(
    ("makefile", "dockerfile", "readme", "license", "licence", "changelog", "gemfile", "rakefile")
)
LANGUAGES: Final = {
    "python": "*.py",
    "javascript": "*.js",
    "typescript": "*.ts",
    "rust": "*.rs",
    "go": "*.go",
    "java": "*.java",
    "ruby": "*.rb",
    "c": "*.c",
    "header": "*.h",
    "markdown": "*.md",
    "json": "*.json",
    "yaml": "*.{yaml,yml}",
    "toml": "*.toml",
    "html": "*.html",
    "css": "*.css",
    "shell": "*.sh",
    "text": "*.txt",
    "test": "*test*",
}
_PATH: Final = re.compile(r"[^\s/\x00]*\.[A-Za-z][\w-]{0,15}|\.[\w.-]+|\.{1,2}|~?[^\s\x00]*/[^\x00]*")
_NUMBERED: Final = re.compile(r"\d+(\.\d+)*")
_NAME: Final = re.compile(r"[A-Za-z_]\w*(?:(?:\.|::)[A-Za-z_]\w*)*(?:\(\))?")
_URL: Final = re.compile(r"https?://\S+")
_EVERYWHERE: Final = re.compile(
    r"""everywhere | here | (?:all|every|each|any) (?:[ ]of)? (?:[ ]the)? [ ]files? |
    (?:(?:the|this|my|our)[ ])? (?:(?:whole|entire|full)[ ])?
    (?:project|repo|repository|workspace|code|codebase|code[ ]base|tree|folder|directory|files)""",
    re.IGNORECASE | re.VERBOSE,
)
_FILLER: Final = re.compile(r"^(?:(?:all|the|my|our|every|file|folder|directory|dir|of|files)\s+)+", re.IGNORECASE)
_TAIL: Final = re.compile(r"\s+(?:files?|folder|directory|dir|module|sources?|code)$", re.IGNORECASE)


def is_url(word: str) -> bool:
    """An address of the web."""
    return _URL.fullmatch(word) is not None


def is_path(word: str) -> bool:
    """Something that is written like a file or a folder."""
    if word.lower() in KNOWN_FILES or is_glob(word):
        return True
    return _PATH.fullmatch(word) is not None and _NUMBERED.fullmatch(word) is None and not is_url(word)


def is_glob(word: str) -> bool:
    """A pattern for file names."""
    return "*" in word and " " not in word


def is_name(word: str) -> bool:
    """Something that is written like a function, a class, a module."""
    return _NAME.fullmatch(word) is not None


def where(phrase: Phrase, masked: str | None, *, loosely: bool = False) -> Where | None:
    """Which files these words mean; None: they mean no files. Loosely: any word may be a folder."""
    text = (masked or "").strip()
    if not text or _EVERYWHERE.fullmatch(text):
        return Where()
    if phrase.chunk(text) is None:
        text = _TAIL.sub("", _FILLER.sub("", text))
        if text.lower() in LANGUAGES:
            return Where(glob=LANGUAGES[text.lower()])
    value = phrase.value(text)
    if is_glob(value):
        return Where(glob=value)
    is_called_one = is_name(value) and (loosely or text != (masked or "").strip())
    if phrase.chunk(text) is not None or is_path(value) or is_called_one:
        return Where(path=value)
    return None


def literal(text: str) -> str:
    """A regular expression that matches just this text, in every engine."""
    return re.sub(r"([\\.^$*+?{}\[\]|()])", r"\\\1", text)
