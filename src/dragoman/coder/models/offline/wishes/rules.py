"""The rules: from words to wishes. A table in order; the first rule that makes sense of the words wins.

In a rule a space stands for any white space. `{chunk}` is a quoted piece, `{file}` one word or quoted piece.
"""

import re
from functools import cached_property
from typing import Final

from dragoman.coder.models.offline.wishes import makers
from dragoman.coder.models.offline.wishes.intents import Hello, Help, Intent, ListFilesIntent, Sum, UnknownIntent
from dragoman.coder.models.offline.wishes.makers import Maker, Match
from dragoman.coder.models.offline.wishes.phrases import MARK, Phrase


class WishRule:
    """`whole` rules see the words as they end; the others see them without the full stop and the thanks."""

    def __init__(self, text: str, make: Maker, *, whole: bool = False) -> None:
        self.make: Final = make
        self.whole: Final = whole
        self._text = text

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Compile the pattern when it is first tried: most requests match an earlier rule."""
        text = self._text
        for name, piece in _PIECES.items():
            text = text.replace(f"{{{name}}}", piece)
        return re.compile(text.replace(" ", r"\s+"), re.IGNORECASE | re.DOTALL)


def intent(phrase: Phrase) -> Intent:
    """What one request means."""
    lead = phrase.masked if _GREETING.match(phrase.masked) else _POLITE.sub("", phrase.masked).strip()
    lead = lead or phrase.masked
    core = _THANKS.sub("", lead).strip() or lead
    for rule in _RULES:
        found = rule.pattern.fullmatch(lead if rule.whole else core)
        if found is not None:
            made = rule.make(found, phrase)
            if made is not None:
                return made
    return UnknownIntent()


_POLITE: Final = re.compile(
    r"^(?:(?:hey|hi|hello|ok|okay|so|now|first|firstly|next|finally|lastly|also|please|kindly|dragoman|just|"
    r"(?:can|could|would|will) you|i(?: want| need|'d like| would like) you to|i(?: want|'d like| would like) to|"
    r"let us|let's|go ahead and|try to|then|and)\b[\s,:!]+)+",
    re.IGNORECASE,
)
_GREETING: Final = re.compile(r"(?:hi|hello|hey)\b[ ,]*(?:there|dragoman)?[.!]*$", re.IGNORECASE)
_THANKS: Final = re.compile(
    r"(?:[\s,]+(?:please|thanks|thank you|for me|right now))*(?<=[\w\x00)\]*/])[.?!,:;]*$", re.IGNORECASE
)

_PIECES: Final = {
    "chunk": MARK,
    "file": rf"(?P<file>{MARK}|\S+?)",
    "name": rf"(?P<name>{MARK}|\S+)",
    "subject": rf"(?P<subject>{MARK}|[^\n]+?)",
    "what": rf"(?P<what>{MARK}|.+?)",
    "show": r"(?:read|show|open|cat|print|display|view|see|look at|take a look at|give)(?: me| us)?",
    "range": r"lines? (?P<a>\d+)(?:\s*(?:-|–|to|through|until|and)\s*(?P<b>\d+))?",
    "in": r"(?: (?:in|inside|within|under|below|from|of|across|throughout) (?P<where>[^\n]+?))?",
    "case": r"(?P<case>,? (?:ignoring case|case[- ]insensitive(?:ly)?))?",
    "tests": r"(?:tests?|test[ -]?suite|test cases?|suite|unittests?)(?=\s|$)",
    "make": r"(?P<verb>create|make|write|add|generate|overwrite|rewrite)\b",
    "a_file": r"(?: (?:a|an|the|new|empty|text|python|file|script|module|named|called|another|test|json|markdown))*",
    "end": r"(?P<end>(?:to|at|on|in|into)(?: the (?:end|bottom|top|beginning|start)(?: of)?)?)",
    "all": r"(?P<all>(?:(?:all|every|each|any|both) (?:of )?)?)(?:the )?",
    "words": r"(?:(?:occurrences?|instances?|uses?|mentions?|words?|text|string|value|line) (?:of )?)?",
    "inside": r" (?:in|inside|within|throughout|across) (?P<where>[^\n]+?)",
    "thing": r"(?:the )?(?:function |class |method |variable |constant )?",
}


def _always(intent: Intent) -> Maker:
    def make(found: Match, phrase: Phrase) -> Intent | None:
        return intent

    return make


_TALKING: Final = [
    WishRule(r"help|\?|/help|usage|commands|(?:who|what) are you|what can (?:you|i) do.*", _always(Help())),
    WishRule(
        r"(?:how|which|what)\b.*\b(?:real model|model are you|model is this|provider|api key)\b.*", _always(Help())
    ),
    WishRule(r"(?:connect|use|switch to|change)(?: to)? (?:a|the|another|real)(?: \w+)? model", _always(Help())),
    WishRule(r"(?:hi|hello|hey|good (?:morning|day|evening|afternoon))\b[ ,]*(?:there|dragoman)?", _always(Hello())),
    WishRule(
        r"(?:thanks|thank you|great|nice|cool|well done|perfect|good)\b(?:[ ,]*(?:so much|a lot|job|work|dragoman))*",
        _always(Hello(thanks=True)),
    ),
    WishRule(
        r"(?:summari[sz]e|sum up|recap)\b(?: (?:the|this|our|what|we|i|you|have|has|was|been|conversation|session|chat|"
        r"history|so far|done|did|said|happened|above|everything))*",
        _always(Sum()),
    ),
    WishRule(r"what (?:have|did) (?:you|we) (?:do|done)(?: so far)?", _always(Sum())),
    WishRule(
        r"(?:(?:make|create|write|draw up|give|show|propose|prepare|draft)(?: me| us)?(?: a| the| your)?"
        r"(?: short| detailed| rough)? plan|plan)(?:(?: (?:to|for|of|how to|about|on how to))? (?P<goal>.+))?",
        makers.plan,
    ),
    WishRule(r"(?:how would you|how do (?:you|i|we)|how can (?:you|i|we)) (?P<goal>.+)", makers.plan),
    WishRule(
        r"ask me (?:(?P<kind>whether|if|about|for) )?(?P<question>.+?)"
        r"(?:[,;:]? (?:with(?: the)? (?:options|choices|answers)|options|choices|between):? (?P<options>.+))?",
        makers.ask,
    ),
]
_REPAIRING: Final = [
    WishRule(r"why\b.*\b(?:fail|fails|failing|failed|broken|red|pass|passes|wrong|break|breaks)\b.*", makers.why),
    WishRule(r"(?:explain|tell me|show me|find out) why\b.*", makers.why),
    WishRule(r"what(?:'s| is)(?: going)? wrong (?:with|in)\b.*", makers.why),
    WishRule(
        r"(?:find|locate|show me|look for) (?:the |a |what |any )*(?:bugs?|problem|cause|reason|mistake|error)\b.*",
        makers.why,
    ),
    WishRule(
        r"(?:(?:find|run|look)\b.*\band )?(?:fix|repair|debug|correct|solve|resolve)\b"
        r"(?=.*(?:\btest|\bbugs?\b|fail|error|broken|\bred\b|\bit$|\bthem\b|\bproblem|\bmistake)).*",
        makers.fix_test,
    ),
    WishRule(r"(?:make|get|turn)\b.*{tests}.*\b(?:pass|passing|green|work|succeed)\b.*", makers.fix_test),
    WishRule(r"(?:make|get) (?:{chunk}|\S*test\S*) (?:to )?(?:pass|green|work|succeed).*", makers.fix_test),
    WishRule(r"(?:fix|repair|debug) (?:the )?(?:failing )?(?:{chunk}|\S*test\S*)", makers.fix_test),
    WishRule(r"(?:the )?(?:tests? )?(?:\S*test\S*|{chunk}) (?:is |are )?(?:fails?|failing|broken|red)\b.*", makers.why),
    WishRule(r"(?:fix|repair|debug|correct|improve|optimi[sz]e|refactor|implement)\b.*", makers.fix_something),
]
_RUNNING: Final = [
    WishRule(r"\$ (?P<command>[^\n]+)", makers.run, whole=True),
    WishRule(
        r"(?:do|does|are|is)\b.*\b{tests}.*\b(?:pass|passes|passing|green|run|ok|fail|failing)\b", makers.run_tests
    ),
    WishRule(
        r"(?:(?:re-?)?run|execute|start|do)(?: (?:all|the|my|our|your|these|unit|whole|full|entire|python|failing))* "
        r"{tests}(?: (?:again|now|suite))*(?: (?:(?:in|from|of|for|named|called) )?(?P<name>{chunk}|[\w./:\[\]-]+))?",
        makers.run_tests,
    ),
    WishRule(r"(?:run|execute) (?:the )?(?:test )?(?P<name>test_\w+|\S+::\S+)(?: test)?", makers.run_tests),
    WishRule(r"test (?:it|this|everything|all|(?:the|this|my) (?:code|project|program))", makers.run_tests),
    WishRule(
        r"(?:run|execute|exec)(?: (?:the|this|following|command|shell|bash|line))*\s*:? (?P<command>.+)",
        makers.run,
        whole=True,
    ),
    WishRule(
        r"(?:fetch|get|download|read|open|show|browse|curl|visit|load|look at)(?: me)?"
        r"(?: (?:the|page|url|site|website|from|at|contents?|of))* (?P<url>{chunk}|<?https?://\S+)",
        makers.fetch,
    ),
    WishRule(r"(?P<url>https?://\S+)", makers.fetch),
]
_WRITING: Final = [
    WishRule(r"(?:(?P<file>{chunk}:?|[^\s\x00]+:?)\s*\n+)?\s*(?P<block>{chunk})", makers.fenced, whole=True),
    WishRule(
        r"(?P<verb>append|prepend|add|insert)\b(?: (?:the|a|an|this|following|new|lines?|text|words?|sentence|saying))*"
        r"\s*:? (?P<content>.+) {end}(?: (?:the )?file)? {file}\.?",
        makers.append,
        whole=True,
    ),
    WishRule(
        r"(?P<verb>append|prepend|add) {end}(?: the)?(?: file)? {file}"
        r"(?:\s*:| (?:the|this|following|a|lines?|text)\b)* (?P<content>.+)",
        makers.append,
        whole=True,
    ),
    WishRule(
        r"{make}{a_file} {file}\s*[,:]? (?:with|containing|that (?:says|contains|has|reads)|saying|"
        r"which (?:says|contains))(?: (?:this|the|following|contents?|text|lines?|code)\b)*\s*:? (?P<content>.+)",
        makers.create,
        whole=True,
    ),
    WishRule(r"{make}{a_file} {file}\s*:?\s*(?P<content>{chunk})", makers.create, whole=True),
    WishRule(r"(?P<verb>create|make|add|generate|touch)\b{a_file} {file}", makers.create),
    WishRule(
        r"(?:write|save|put|store)(?: (?:the|this|following|text|words?|lines?|content)\b)*\s*:? (?P<content>.+) "
        r"(?:to|into|in|as|under)(?: (?:a|the|new|file|named|called))* {file}\.?",
        makers.write_to,
        whole=True,
    ),
    WishRule(
        r"(?:replace|substitute) {all}{words}(?P<old>.+?) (?:with|by) (?P<new>.+){inside}(?P<every> everywhere)?",
        makers.replace_it,
    ),
    WishRule(
        r"(?:replace|substitute) {all}{words}(?P<old>.+?) (?:with|by) (?P<new>.+?)(?P<every> everywhere)?",
        makers.replace_it,
    ),
    WishRule(
        r"in (?P<where>{chunk}|\S+?),? (?:replace|change) {all}{words}(?P<old>.+?) (?:with|by|to|into) (?P<new>.+)",
        makers.replace_it,
    ),
    WishRule(
        r"(?:change|turn|edit|modify|update|switch|set) {all}{words}(?P<old>.+?) (?:to|into) (?P<new>.+){inside}",
        makers.replace_it,
    ),
    WishRule(
        r"rename {thing}(?:(?:name|file) )?(?P<old>{chunk}|\S+) (?:to|as|into) (?P<new>{chunk}|\S+){in}"
        r"(?: everywhere)?",
        makers.rename,
    ),
    WishRule(r"(?P<verb>delete|remove|move|copy)\b(?: the)?(?: file| folder)? (?P<rest>.+)", makers.by_command),
]
_FINDING: Final = [
    WishRule(
        r"(?:find )?where(?:'s| is| are)? {thing}{name} (?:is )?(?:defined|declared|implemented|written){in}",
        makers.defined,
    ),
    WishRule(
        r"(?:find|show|search for|go to)(?: me)? (?:the )?(?:definition|declaration|implementation) (?:of|for) {thing}"
        r"{name}{in}",
        makers.defined,
    ),
    WishRule(
        r"(?:find )?where(?:'s| is| are)? {thing}{name} (?:is )?(?:used|called|referenced|mentioned|imported){in}",
        makers.used,
    ),
    WishRule(r"who (?:calls|uses|imports) {name}{in}", makers.used),
    WishRule(
        r"(?:which|what) files? (?:contains?|mentions?|uses?|have|has|imports?|calls?) (?P<name>{chunk}|.+?){in}",
        makers.used,
    ),
    WishRule(
        r"(?:find|show|list|search for)(?: me)? (?:all |the |every )*(?:uses?|usages?|references?|occurrences?|calls?|"
        r"mentions?|callers?) (?:of|to|for) (?P<name>{chunk}|.+?){in}",
        makers.used,
    ),
    WishRule(r"where (?:is|are) (?:the file )?{thing}{name}", makers.whereabouts),
    WishRule(r"grep (?:for )?{what}{in}{case}", makers.grep),
    WishRule(
        r"(?:search|look|scan)(?: (?:through |in )?(?:the|all|code|files|project|repo|repository|workspace))* for "
        r"(?:the )?(?:(?P<regex>regex|regular expression|pattern) )?(?:(?:text|words?|string) )?{what}{in}{case}",
        makers.search_for,
    ),
    WishRule(r"search (?P<where>\S+) for {what}{case}", makers.search_for),
    WishRule(r"search {what}{in}{case}", makers.search_for),
    WishRule(
        r"(?:find|locate|look for|show me|list) (?:me )?(?:all |the |any |every )*files? (?:named|called|matching|like|"
        r"with (?:the )?names?(?: like)?|that match|ending in) {name}{in}",
        makers.find_named,
    ),
    WishRule(r"(?P<tool>ls|dir|tree)(?P<rest> [^\n]+)?", makers.ls, whole=True),
    WishRule(r"(?:list|show|find|see)(?: me)? (?:all |the |my |every )*(?P<kind>\w+) files{in}", makers.list_kind),
    WishRule(
        r"(?:list|show|see|display)(?: me)? (?:all |the |my )*(?:files?|folders?|directories|directory|contents?|"
        r"everything)(?: and (?:folders|directories))?(?: (?:here|there))?{in}",
        makers.list_folder,
    ),
    WishRule(r"list (?P<where>\S+)", makers.list_folder),
    WishRule(
        r"what(?:'s| is)(?: in)? (?:here|there|(?:the |this )?(?:current |working )?"
        r"(?:folder|directory|project|repo|repository|workspace))",
        _always(ListFilesIntent()),
    ),
    WishRule(r"(?:what|which) files (?:are|do (?:we|you|i)) (?:here|there|have|see)", _always(ListFilesIntent())),
    WishRule(r"(?:what|which) files are(?: there)?{in}", makers.list_folder),
    WishRule(r"(?:find|locate|look for) (?:the )?(?:files? )?(?P<name>{chunk}|.+?){in}", makers.find_it),
]
_READING: Final = [
    WishRule(r"{show} (?:the |only )*{range} (?:of|in|from) (?:the )?(?:file )?{file}", makers.read),
    WishRule(r"{show} (?:the )?first (?P<b>\d+) lines (?:of|in|from) (?:the )?(?:file )?{file}", makers.first_lines),
    WishRule(
        r"(?:summari[sz]e|outline|describe|explain) {subject}(?: (?:does|do|works?|is|means|is for))?(?: to me)?{in}",
        makers.explain,
    ),
    WishRule(
        r"{show}(?: (?:the|this|file|contents?|text|of|in|attached|inside))* {file}"
        r"(?:,?\s*\(?(?:from |at |only )?{range}\)?)?",
        makers.read,
    ),
    WishRule(
        r"what(?:'s| is| are) (?:the )?(?:contents? of|in|inside) (?:the |this )?(?:file |folder |directory )?"
        r"{file}(?:,? (?:at )?{range})?",
        makers.contents,
    ),
    WishRule(r"what does (?:the )?(?:file )?{file} (?:contain|say|look like)", makers.contents),
    WishRule(r"what (?:does|do) {subject} (?:do|mean|return|work){in}", makers.explain),
    WishRule(r"how (?:does|do) {subject} (?:work|function){in}", makers.explain),
    WishRule(r"(?:what(?:'s| is)|tell me about) {subject}{in}", makers.explain),
    WishRule(r"(?P<subject>{chunk})", makers.explain),
    WishRule(r"(?P<file>\S+\.\w+(?::\d+(?:-\d+)?)?)", makers.read),
]
_RULES: Final = [*_TALKING, *_REPAIRING, *_RUNNING, *_WRITING, *_FINDING, *_READING]
