"""What a rule makes of the words it has caught. None: they only look like it, and another rule may know better."""

import re
from collections.abc import Callable
from shlex import quote
from typing import Final

from dragoman.coder.models.offline.wishes.intents import (
    Append,
    Ask,
    Create,
    Explain,
    Fetch,
    FindFiles,
    Fix,
    Intent,
    ListFilesIntent,
    MakePlan,
    Read,
    Rename,
    Replace,
    Run,
    RunTests,
    Search,
    UnknownIntent,
    Where,
)
from dragoman.coder.models.offline.wishes.names import LANGUAGES, is_glob, is_name, is_path, is_url, literal, where
from dragoman.coder.models.offline.wishes.phrases import MARK, Phrase

Match = re.Match[str]
Maker = Callable[[Match, Phrase], Intent | None]


_OF_TEST: Final = re.compile(r"\S+::\S+|\btest_\w+(?:\.\w+)*|\bTest[A-Z]\w*(?:\.\w+)*|[\w/.-]+\.(?:py|js|ts|rs|go)\b")


def _int(text: str | None) -> int | None:
    return int(text) if text else None


# -- looking ---------------------------------------------------------------------------------------------------------


def read(found: Match, phrase: Phrase) -> Intent | None:
    groups = found.groupdict()
    path, start, end = phrase.value(found["file"]), _int(groups.get("a")), _int(groups.get("b"))
    if is_url(path):
        return Fetch(path)
    placed = re.fullmatch(r"(.+?):(\d+)(?:-(\d+))?", path)
    if placed and start is None:
        path, start, end = placed[1], int(placed[2]), int(placed[3] or placed[2])
    if path.endswith("/") or path in (".", ".."):
        return ListFilesIntent(path)
    if is_glob(path):
        return FindFiles(anywhere(path))
    if is_path(path) or phrase.chunk(found["file"]) is not None:
        return Read(path, start, start if start and not end else end)
    return Explain(path) if is_name(path) and not re.fullmatch(_SOMETHING, path, re.IGNORECASE) else None


_SOMETHING: Final = r"everything|files?|tests?|it|this|that|them|all|here|code|project|folder|directory|more|me|help"


def first_lines(found: Match, phrase: Phrase) -> Intent | None:
    return Read(phrase.value(found["file"]), 1, int(found["b"]))


def contents(found: Match, phrase: Phrase) -> Intent | None:
    path = phrase.value(found["file"])
    if re.fullmatch(r"here|there|this|it", path, re.IGNORECASE):
        return ListFilesIntent()
    if is_path(path) and not path.endswith("/"):
        return read(found, phrase)
    return ListFilesIntent(path)


def list_folder(found: Match, phrase: Phrase) -> Intent | None:
    place = where(phrase, found["where"], loosely=True)
    if place is None:
        return None
    return FindFiles(anywhere(place.glob)) if place.glob else ListFilesIntent(place.path)


def list_kind(found: Match, phrase: Phrase) -> Intent | None:
    pattern = LANGUAGES.get(found["kind"].lower())
    place = where(phrase, found["where"], loosely=True)
    return None if pattern is None or place is None else FindFiles(anywhere(pattern), place.path)


def ls(found: Match, phrase: Phrase) -> Intent | None:
    rest = (found["rest"] or "").strip()
    is_command = rest.startswith("-") or " " in rest
    return (
        Run(f"{found['tool']} {phrase.command(rest)}")
        if is_command
        else ListFilesIntent(phrase.value(rest) if rest else "")
    )


def anywhere(pattern: str) -> str:
    return pattern if "/" in pattern else f"**/{pattern}"


def find_named(found: Match, phrase: Phrase) -> Intent | None:
    name, place = phrase.value(found["name"]), where(phrase, found["where"], loosely=True)
    if place is None:
        return None
    return FindFiles(anywhere(name if is_glob(name) or "." in name else f"*{name}*"), place.path)


def find_it(found: Match, phrase: Phrase) -> Intent | None:
    name, place = phrase.value(found["name"]), where(phrase, found["where"], loosely=True)
    if place is None:
        return None
    kind = re.fullmatch(r"(?:all |the |every )*(\w+) files?", name, re.IGNORECASE)
    if kind and kind[1].lower() in LANGUAGES:
        return FindFiles(anywhere(LANGUAGES[kind[1].lower()]), place.path)
    name = re.sub(r"^(?:all |the |every |any )+|\s+files?$", "", name, flags=re.IGNORECASE)
    if is_path(name) and " " not in name and (is_glob(name) or not place.glob):
        return FindFiles(anywhere(name), place.path)
    return Search(literal(name), name, place) if name and not re.match(r"(?:a|an|out|me)\b", name) else None


def search_for(found: Match, phrase: Phrase) -> Intent | None:
    groups = found.groupdict()
    masked, place = found["what"].strip(), where(phrase, groups.get("where"), loosely=True)
    if place is None:
        # "search for cats in hats": there is no such place, so it belongs to the words.
        masked, place = f"{masked} in {groups['where']}", Where()
    what = phrase.value(masked)
    given = re.fullmatch(r"/(.+)/", what)
    is_regex = bool(groups.get("regex") or given)
    pattern = given[1] if given else what
    if not what or what.startswith("-"):
        return Run(phrase.command(found[0])) if found[0].lower().startswith("grep") else None
    return Search(pattern if is_regex else literal(pattern), what, place, ignore_case=bool(groups.get("case")))


def grep(found: Match, phrase: Phrase) -> Intent | None:
    made = search_for(found, phrase)
    return made._replace(pattern=made.what) if isinstance(made, Search) and _compiles(made.what) else made


def _compiles(pattern: str) -> bool:
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError):
        return False
    return True


def defined(found: Match, phrase: Phrase) -> Intent | None:
    name = phrase.value(found["name"]).removesuffix("()").rpartition(".")[2]
    place = where(phrase, found.groupdict().get("where"), loosely=True) or Where()
    if not is_name(name):
        return None
    return Search(definition(name), f"the definition of {name}", place)


def definition(name: str) -> str:
    """Lines that define a name, in the languages people write most."""
    keyword = r"(def|class|function|func|fn|struct|enum|trait|interface|type|const|let|var|module|macro_rules!|#define)"
    return rf"\b{keyword}\s+(\([^)]*\)\s*)?{name}\b|^\s*{name}\s*(:[^=]*)?=[^=]"


def used(found: Match, phrase: Phrase) -> Intent | None:
    name = phrase.value(found["name"]).removesuffix("()")
    place = where(phrase, found.groupdict().get("where"), loosely=True)
    return None if place is None else Search(rf"\b{literal(name)}\b" if is_name(name) else literal(name), name, place)


def whereabouts(found: Match, phrase: Phrase) -> Intent | None:
    name = phrase.value(found["name"])
    if is_path(name) and "(" not in name:
        return FindFiles(anywhere(name))
    return defined(found, phrase)


def explain(found: Match, phrase: Phrase) -> Intent | None:
    groups = found.groupdict()
    masked = re.sub(_ARTICLES, "", found["subject"].strip(), flags=re.IGNORECASE)
    chunk = phrase.chunk(masked)
    if chunk is not None and chunk.kind == "fence":
        return None
    subject = phrase.value(masked)
    if re.fullmatch(r"(?:(?:this|it|that|here)\b\s*)?(?:project|repo|repository|workspace|code|folder)?", masked):
        return Explain("")
    place = where(phrase, groups.get("where"))
    if is_url(subject):
        return Fetch(subject)
    if place is None or not (is_path(subject) or is_name(subject) or phrase.chunk(masked)):
        return None
    return Explain(subject, place.path)


_ARTICLES: Final = (
    r"^(?:(?:the|a|an|this|that|file|function|method|class|module|script|code|what|how|of|in|me|us|to me|attached|"
    r"about|content|contents|following)[\s:]+)+(?=\S)"
)


# -- doing -----------------------------------------------------------------------------------------------------------


def fetch(found: Match, phrase: Phrase) -> Intent | None:
    url = phrase.value(found["url"]).rstrip(".,)>").lstrip("<(")
    return Fetch(url) if is_url(url) else None


def run(found: Match, phrase: Phrase) -> Intent | None:
    text = found["command"].strip()
    begins = re.match(rf"({MARK})(.*)", text, re.DOTALL)
    if begins and (chunk := phrase.chunk(begins[1])) is not None and chunk.kind != "mention":
        rest = begins[2].strip(" .,!\n")
        folder = re.fullmatch(r"(?:please )?(?:in|inside|from)\s+(?:the\s+)?(\S+)(?:\s+(?:folder|directory))?", rest)
        if folder:
            return Run(f"cd {quote(phrase.value(folder[1]))} && {chunk.value.strip()}")
        if rest in ("", "please", "now", "for me"):
            return Run(chunk.value.strip())
    if "\n" in text or re.match(r"(?:a|an|the|some|all|my|your|it|this|that|them)\b", text, re.IGNORECASE):
        return None
    return Run(re.sub(r"\s+please\.?$|(?<=\w)\.$", "", phrase.command(text)))


def run_tests(found: Match, phrase: Phrase) -> Intent | None:
    masked = found.groupdict().get("name")
    return RunTests(phrase.value(masked) if masked else "")


def create(found: Match, phrase: Phrase) -> Intent | None:
    path, groups = phrase.value(found["file"].rstrip(":,")), found.groupdict()
    if not (is_path(path) or phrase.chunk(found["file"].rstrip(":,"))) or is_glob(path) or is_url(path):
        return None
    content = groups.get("content")
    given = "" if content is None else _given(content, phrase)
    return Create(path, given, overwrite=found["verb"].lower() in ("overwrite", "rewrite", "write"))


def write_to(found: Match, phrase: Phrase) -> Intent | None:
    path = phrase.value(found["file"])
    if not (is_path(path) or phrase.chunk(found["file"])) or is_url(path):
        return None
    return Create(path, _given(found["content"], phrase), overwrite=True)


def fenced(found: Match, phrase: Phrase) -> Intent | None:
    """A path and a block: `src/a.py:` above it, or behind its ticks."""
    chunk = phrase.chunk(found["block"])
    if chunk is None or chunk.kind != "fence":
        return None
    named = phrase.value((found["file"] or "").strip().rstrip(":")) or chunk.info.rpartition(" ")[2]
    named = named.rpartition(":")[2] if found["file"] is None else named
    return Create(named, chunk.value) if is_path(named) and " " not in named else None


def append(found: Match, phrase: Phrase) -> Intent | None:
    path, groups = phrase.value(found["file"].rstrip(":")), found.groupdict()
    if not (is_path(path) or phrase.chunk(found["file"].rstrip(":"))):
        return None
    at_top = found["verb"].lower() == "prepend" or bool(re.search("top|beginning|start", groups.get("end") or ""))
    return Append(path, _given(found["content"], phrase), at_top)


def _given(masked: str, phrase: Phrase) -> str:
    """Content for a file: the block, the quotation, or the words; a text file ends with a line end."""
    masked = masked.strip()
    masked = masked if phrase.chunk(masked) else re.sub(rf"^({MARK})\s*[.!]?(?:\s*please\.?)?$", r"\1", masked)
    text = phrase.value(masked)
    return text if text.endswith("\n") or not text else text + "\n"


def replace_it(found: Match, phrase: Phrase) -> Intent | None:
    groups = found.groupdict()
    place = where(phrase, groups.get("where"))
    if place is None:
        return None
    old, new = phrase.value(found["old"]), phrase.value(found["new"])
    everything = bool(groups.get("all") or groups.get("every")) or (groups.get("where") is not None and not place.path)
    return Replace(old, new, place, everything) if old != new else None


def rename(found: Match, phrase: Phrase) -> Intent | None:
    old, new = phrase.value(found["old"]).removesuffix("()"), phrase.value(found["new"]).removesuffix("()")
    place = where(phrase, found["where"])
    if is_path(old) and is_path(new):
        return UnknownIntent(f"To rename a file, say: run `mv -n {quote(old)} {quote(new)}`")
    return Rename(old, new, place) if place is not None and is_name(old) and is_name(new) and old != new else None


def by_command(found: Match, phrase: Phrase) -> Intent | None:
    verb, subject = found["verb"].lower(), phrase.value(found["rest"])
    if not is_path(subject):
        return None
    tool = {"delete": "rm", "remove": "rm", "move": "mv -n", "copy": "cp -n"}[verb]
    return UnknownIntent(
        f"I do not {verb} files by myself. Say it as a command, for example: run `{tool} {quote(subject)} …`"
    )


def plan(found: Match, phrase: Phrase) -> Intent | None:
    return MakePlan(phrase.raw(found.groupdict().get("goal") or "").strip(" .:"))


def ask(found: Match, phrase: Phrase) -> Intent | None:
    question = phrase.value(found["question"])
    options = [phrase.value(option) for option in re.split(r"\s*,\s*(?:or\s+)?|\s+or\s+", found["options"] or "")]
    kind = found.groupdict().get("kind") or ""
    if kind.lower() in ("whether", "if"):
        question = f"{question[:1].upper()}{question[1:]}: yes or no"
        options = options if found["options"] else ["yes", "no"]
    if not question.endswith("?"):
        question = re.sub(r"\bI\b", "do you", re.sub(r"\bmy\b", "your", f"{question[:1].upper()}{question[1:]}?"))
    return Ask(question, tuple(option.strip(" ?.") for option in options if option.strip(" ?.")))


# -- repairing -------------------------------------------------------------------------------------------------------


def fix_test(found: Match, phrase: Phrase) -> Intent | None:
    return Fix(_tested(found[0], phrase), edit=True)


def why(found: Match, phrase: Phrase) -> Intent | None:
    wants_repair = re.search(r"\b(?:fix|repair|correct)\b", found[0], re.IGNORECASE)
    return Fix(_tested(found[0], phrase), edit=wants_repair is not None)


def fix_something(found: Match, phrase: Phrase) -> Intent | None:
    return UnknownIntent("I can repair what a failing Python test shows, and replace text that you name.")


def _tested(masked: str, phrase: Phrase) -> str:
    chunk = re.search(MARK, masked)
    if chunk is not None:
        return phrase.value(chunk[0]).removesuffix("()")
    named = _OF_TEST.search(masked)
    if named is not None:
        return named[0].rstrip(".")
    bug = re.search(r"\b(?:bug|mistake|problem|error) in (?:the )?(?:function |method |file )?([\w.]+)", masked)
    return bug[1].rstrip(".") if bug else ""
