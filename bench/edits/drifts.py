"""How models change what they copy. Each function takes an exact edit and returns it with one drift, or None."""

import re
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, Protocol


class Edit(Protocol):
    """An edit that fits its file exactly."""

    @property
    def source(self) -> str: ...
    @property
    def file(self) -> str: ...
    @property
    def old(self) -> str: ...
    @property
    def new(self) -> str: ...
    @property
    def result(self) -> str: ...


class Drifted(NamedTuple):
    """A file and an edit after a drift, and the file that should result; None: the edit must be refused."""

    file: str
    old: str
    new: str
    expected: str | None
    accepted: tuple[str, ...] = ()
    blanks_at_ends: bool = False

    def is_idle(self, file: str, old: str, new: str) -> bool:
        """Return whether nothing was changed."""
        return (self.file, self.old, self.new) == (file, old, new)


_TYPOGRAPHIC: Final = str.maketrans({"“": '"', "”": '"', "’": "'", "–": "-"})
_COMMENTS: Final = {"py": "# ...", "ts": "// ...", "go": "// ...", "rs": "// ...", "java": "// ...", "c": "/* ... */"}
_REMARKS: Final = {
    "py": "# ... existing code ...",
    "sh": "# ... existing code ...",
    "ts": "// ... existing code ...",
    "go": "// ... existing code ...",
    "rs": "// ... existing code ...",
    "java": "// ... existing code ...",
    "html": "<!-- ... existing code ... -->",
}


# -- white space -------------------------------------------------------------------------------------------------------


def exact(edit: Edit) -> Drifted | None:
    return Drifted(edit.file, edit.old, edit.new, edit.result)


def blanks_at_line_ends_of_the_file(edit: Edit) -> Drifted | None:
    """The file has blanks at the ends of lines, and the model leaves them out."""
    kept = _kept(edit)
    if not kept:
        return None
    marked = "\n".join(line + "  " if line.strip() in kept else line for line in edit.old.split("\n"))
    expected = "\n".join(line + "  " if line.strip() in kept else line for line in edit.new.split("\n"))
    file = edit.file.replace(edit.old, marked)
    return _if_not_exact(edit, file, edit.old, edit.new, edit.file.replace(edit.old, expected), blanks_at_ends=True)


def blanks_at_line_ends_of_the_edit(edit: Edit) -> Drifted | None:
    """The model writes blanks at the ends of lines that the file does not have."""
    kept = _kept(edit)
    old, new = (
        "\n".join(line + " " if line.strip() in kept else line for line in text.split("\n"))
        for text in (edit.old, edit.new)
    )
    return _if_not_exact(edit, edit.file, old, new, edit.result, blanks_at_ends=True)


def blanks_in_blank_lines(edit: Edit) -> Drifted | None:
    """Blank lines of the file have the indentation of the code around them."""
    if "\n\n" not in edit.old:
        return None
    file = edit.file.replace(edit.old, edit.old.replace("\n\n", "\n    \n"))
    return _if_not_exact(edit, file, edit.old, edit.new, edit.result, blanks_at_ends=True)


def a_blank_line_left_out(edit: Edit) -> Drifted | None:
    """A blank line of the file, between lines that do not change, is not in the edit."""
    before, after = _context(edit)
    for context in (before, after):
        if "\n\n" in context.strip("\n"):
            shorter = context.replace("\n\n", "\n")
            old, new = edit.old.replace(context, shorter), edit.new.replace(context, shorter)
            return _if_not_exact(edit, edit.file, old, new, edit.result)
    return None


def a_blank_line_too_many(edit: Edit) -> Drifted | None:
    """The model puts a blank line between two lines that do not change."""
    before, after = _context(edit)
    for context in (before, after):
        lines = context.split("\n")
        if len([line for line in lines if line.strip()]) >= 2 and all(line.strip() for line in lines[:2]):
            longer = "\n".join([lines[0], "", *lines[1:]])
            old, new = edit.old.replace(context, longer), edit.new.replace(context, longer)
            return _if_not_exact(edit, edit.file, old, new, edit.result)
    return None


def a_blank_line_before(edit: Edit) -> Drifted | None:
    """Both texts begin with a blank line that is not in the file."""
    return _if_not_exact(edit, edit.file, "\n" + edit.old, "\n" + edit.new, edit.result)


def a_blank_line_behind(edit: Edit) -> Drifted | None:
    """Both texts end with a blank line that is not in the file."""
    return _if_not_exact(edit, edit.file, edit.old + "\n\n", edit.new + "\n\n", edit.result)


# -- indentation -------------------------------------------------------------------------------------------------------


def no_indentation(edit: Edit) -> Drifted | None:
    """The common indentation is left out."""
    common = _common_indent(edit)
    return _reindented(edit, lambda line: line.removeprefix(common)) if common else None


def less_indentation(edit: Edit) -> Drifted | None:
    """One step of the common indentation is left out."""
    common = _common_indent(edit)
    step = _step(edit)
    if len(common) <= len(step) or not common.endswith(step):
        return None
    return _reindented(edit, lambda line: line.removeprefix(step))


def more_indentation(edit: Edit) -> Drifted | None:
    """All lines are a step deeper than in the file."""
    step = _step(edit)
    return _reindented(edit, lambda line: step + line if line else line)


def four_spaces_more(edit: Edit) -> Drifted | None:
    """All lines are four spaces deeper, also in a file with tabs or with steps of two."""
    if _step(edit) == "    " or (_step(edit) == "\t" and "\t" in edit.old):
        return None
    return _reindented(edit, lambda line: "    " + line if line else line)


def spaces_for_tabs(edit: Edit) -> Drifted | None:
    """Four spaces for each tab."""
    return _reindented(edit, lambda line: _with_indent(line, "\t", "    ")) if _step(edit) == "\t" else None


def two_spaces_for_tabs(edit: Edit) -> Drifted | None:
    """Two spaces for each tab."""
    return _reindented(edit, lambda line: _with_indent(line, "\t", "  ")) if _step(edit) == "\t" else None


def eight_spaces_for_tabs(edit: Edit) -> Drifted | None:
    """Eight spaces for each tab."""
    return _reindented(edit, lambda line: _with_indent(line, "\t", " " * 8)) if _step(edit) == "\t" else None


def tabs_for_spaces(edit: Edit) -> Drifted | None:
    """A tab for each step of spaces."""
    step = _step(edit)
    if step == "\t" or not _is_regular(edit, step):
        return None
    return _reindented(edit, lambda line: _with_indent(line, step, "\t"))


def two_spaces_for_four(edit: Edit) -> Drifted | None:
    """Steps of two spaces in a file with steps of four."""
    if _step(edit) != "    " or not _is_regular(edit, "    ") or not _has_two_depths(edit):
        return None
    return _reindented(edit, lambda line: _with_indent(line, "    ", "  "))


def four_spaces_for_two(edit: Edit) -> Drifted | None:
    """Steps of four spaces in a file with steps of two."""
    if _step(edit) != "  " or not _is_regular(edit, "  ") or not _has_two_depths(edit):
        return None
    return _reindented(edit, lambda line: _with_indent(line, "  ", "    "))


def stripped(edit: Edit) -> Drifted | None:
    """White space at the ends of both texts is left out, and the file has blanks at a line end."""
    kept = _kept(edit)
    first = next(iter(kept), "")
    if not first or edit.old.strip().startswith(first):
        return None
    file = edit.file.replace(edit.old, edit.old.replace(first + "\n", first + " \n", 1))
    return _if_not_exact(edit, file, edit.old.strip(), edit.new.strip(), edit.result, blanks_at_ends=True)


# -- line ends ---------------------------------------------------------------------------------------------------------


def crlf_in_the_file(edit: Edit) -> Drifted | None:
    return Drifted(_crlf(edit.file), edit.old, edit.new, _crlf(edit.result))


def crlf_in_the_edit(edit: Edit) -> Drifted | None:
    return Drifted(edit.file, _crlf(edit.old), _crlf(edit.new), edit.result)


def crlf_and_no_indentation(edit: Edit) -> Drifted | None:
    drifted = no_indentation(edit)
    return drifted and drifted._replace(file=_crlf(edit.file), expected=_crlf(edit.result))


def no_line_end_at_the_end(edit: Edit) -> Drifted | None:
    """The file ends with the edited lines and without a line end, which the edit has."""
    if not _ends_a_line(edit):
        return None
    head = edit.file[: edit.file.index(edit.old)]
    return Drifted(head + edit.old, edit.old + "\n", edit.new + "\n", head + edit.new)


def line_end_of_the_old_text_alone(edit: Edit) -> Drifted | None:
    """The old text ends with a line end and the new one does not."""
    if not _ends_a_line(edit):
        return None
    return Drifted(edit.file, edit.old + "\n", edit.new, edit.result)


def line_end_of_the_new_text_alone(edit: Edit) -> Drifted | None:
    """The new text ends with a line end and the old one does not: one line end, or as it is written, two."""
    if not _ends_a_line(edit):
        return None
    twice = edit.file.replace(edit.old, edit.new + "\n")
    return Drifted(edit.file, edit.old, edit.new + "\n", edit.result, (twice,))


def line_ends_of_both(edit: Edit) -> Drifted | None:
    """Both texts end with a line end, and no indentation."""
    drifted = no_indentation(edit)
    if drifted is None or not _ends_a_line(edit):
        return None
    return drifted._replace(old=drifted.old + "\n", new=drifted.new + "\n")


# -- characters --------------------------------------------------------------------------------------------------------


def plain_quotes_and_dashes(edit: Edit) -> Drifted | None:
    """The file has typographic quotes and dashes, and the edit plain ones."""
    return _if_not_exact(
        edit, edit.file, edit.old.translate(_TYPOGRAPHIC), edit.new.translate(_TYPOGRAPHIC), edit.result
    )


def typographic_quotes(edit: Edit) -> Drifted | None:
    """The edit has typographic quotes where the file has plain ones."""
    if '"' not in edit.old or "”" in edit.file:
        return None
    old, new = (re.sub('"([^"\n]*)"', "“\\1”", text) for text in (edit.old, edit.new))
    return _if_not_exact(edit, edit.file, old, new, edit.result) if '"' not in old + new else None


def no_break_spaces_in_the_file(edit: Edit) -> Drifted | None:
    """A line of the file that does not change has a no-break space."""
    for line in _kept(edit):
        if " " in line and edit.old.count(line) == edit.new.count(line) == 1:
            spaced = line.replace(" ", "\u00a0", 1)
            file = edit.file.replace(edit.old, edit.old.replace(line, spaced))
            expected = edit.file.replace(edit.old, edit.new.replace(line, spaced))
            return _if_not_exact(edit, file, edit.old, edit.new, expected)
    return None


def no_break_spaces_in_the_edit(edit: Edit) -> Drifted | None:
    """The edit has a no-break space in a line that does not change."""
    for line in _kept(edit):
        if " " in line and edit.old.count(line) == edit.new.count(line) == 1:
            spaced = line.replace(" ", "\u00a0", 1)
            return _if_not_exact(
                edit, edit.file, edit.old.replace(line, spaced), edit.new.replace(line, spaced), edit.result
            )
    return None


def two_blanks_for_one(edit: Edit) -> Drifted | None:
    """A line of the file that does not change is spaced wider than the edit has it."""
    for line in _kept(edit):
        if " = " in line and edit.old.count(line) == edit.new.count(line) == 1:
            wide = line.replace(" = ", "  = ")
            file = edit.file.replace(edit.old, edit.old.replace(line, wide))
            expected = edit.file.replace(edit.old, edit.new.replace(line, wide))
            return _if_not_exact(edit, file, edit.old, edit.new, expected, (edit.result,))
    return None


# -- what tools and formats leave behind -------------------------------------------------------------------------------


def line_numbers(edit: Edit) -> Drifted | None:
    """The old text was copied with the numbers of the lines."""
    first = edit.file[: edit.file.index(edit.old)].count("\n") + 1
    if not _begins_a_line(edit):
        return None
    return Drifted(edit.file, _numbered(edit.old, first, "\t"), edit.new, edit.result)


def line_numbers_in_both(edit: Edit) -> Drifted | None:
    """Both texts have numbers of lines."""
    first = edit.file[: edit.file.index(edit.old)].count("\n") + 1
    if not _begins_a_line(edit):
        return None
    return Drifted(edit.file, _numbered(edit.old, first, " | "), _numbered(edit.new, first, " | "), edit.result)


def escaped_quotes(edit: Edit) -> Drifted | None:
    """Quotes have a backslash that belongs to the JSON of the call."""
    if '"' not in edit.old or "\\" in edit.old + edit.new:
        return None
    return Drifted(edit.file, edit.old.replace('"', '\\"'), edit.new.replace('"', '\\"'), edit.result)


def escaped_lines(edit: Edit) -> Drifted | None:
    """The texts are JSON within JSON: one line each."""
    if "\\" in edit.old + edit.new or "\t" in edit.old + edit.new:
        return None
    old, new = (text.replace('"', '\\"').replace("\n", "\\n") for text in (edit.old, edit.new))
    if '"' in new and '"' not in old:
        return None
    return Drifted(edit.file, old, new, edit.result)


def dots_for_lines(edit: Edit) -> Drifted | None:
    """Lines in the middle that do not change are three dots in both texts."""
    return _elided(edit, "...")


def a_comment_for_lines(edit: Edit) -> Drifted | None:
    """Lines in the middle that do not change are a comment with three dots in both texts."""
    comment = _COMMENTS.get(_language(edit))
    return _elided(edit, comment) if comment else None


def a_remark_for_lines(edit: Edit) -> Drifted | None:
    """Lines in the middle that do not change are a remark about existing code in both texts."""
    remark = _REMARKS.get(_language(edit))
    return _elided(edit, remark) if remark else None


# -- moved code --------------------------------------------------------------------------------------------------------


def moved_to_the_end(edit: Edit) -> Drifted | None:
    """The block is at the end of the file by now."""
    if not _is_whole_lines(edit):
        return None
    rest = edit.file.replace(edit.old + "\n", "")
    return Drifted(f"{rest}\n{edit.old}\n", edit.old, edit.new, f"{rest}\n{edit.new}\n")


def moved_and_deeper(edit: Edit) -> Drifted | None:
    """The block is at the end of the file, and a step deeper."""
    if not _is_whole_lines(edit) or edit.source == "guide.md":
        return None
    step = _step(edit)
    old, new = (_each_line(text, lambda line: step + line if line else line) for text in (edit.old, edit.new))
    rest = edit.file.replace(edit.old + "\n", "")
    return _if_not_exact(edit, f"{rest}\n{old}\n", edit.old, edit.new, f"{rest}\n{new}\n")


# -- must be refused ---------------------------------------------------------------------------------------------------


def twice_in_the_file(edit: Edit) -> Drifted | None:
    """The file has the old text twice."""
    return Drifted(f"{edit.file}\n{edit.old}\n", edit.old, edit.new, None)


def twice_but_for_indentation(edit: Edit) -> Drifted | None:
    """Two blocks are the same but for their indentation, and the edit has neither."""
    step = _step(edit)
    if "\n" not in edit.old.strip() or _indents(edit.old) == {""}:
        return None
    drifted = no_indentation(edit)
    if drifted is None:
        return None
    deeper = _each_line(edit.old, lambda line: step + line if line else line)
    file = f"{edit.file}\n{deeper}\n"
    return drifted._replace(file=file, expected=None) if file.count(drifted.old) == 0 else None


def another_word_in_a_kept_line(edit: Edit) -> Drifted | None:
    """A line that is to stay has another word in the file: the model remembers an older file."""
    for line in _kept(edit):
        changed = _with_another_word(line)
        if changed and edit.old.count(line) == edit.new.count(line) == 1 and changed not in edit.old:
            file = edit.file.replace(edit.old, edit.old.replace(line, changed))
            only_the_change = edit.file.replace(edit.old, edit.new.replace(line, changed))
            return Drifted(file, edit.old, edit.new, None, (only_the_change,))
    return None


def another_number_in_a_changed_line(edit: Edit) -> Drifted | None:
    """A line that is to be replaced has another number in the file."""
    changed = [line for line in edit.old.split("\n") if line.strip() and line not in edit.new.split("\n")]
    for line in changed:
        other = re.sub(r"\d+", lambda number: str(int(number[0]) + 7), line)
        if other != line:
            return Drifted(edit.file.replace(edit.old, edit.old.replace(line, other)), edit.old, edit.new, None)
    return None


def a_letter_left_out(edit: Edit) -> Drifted | None:
    """A word of a kept line is misspelled in the edit."""
    for line in _kept(edit):
        word = max(re.findall(r"[A-Za-z]{5,}", line), key=len, default="")
        if word and edit.old.count(line) == edit.new.count(line) == 1:
            wrong = line.replace(word, word[:2] + word[3:])
            old, new = edit.old.replace(line, wrong), edit.new.replace(line, wrong)
            return Drifted(edit.file, old, new, None, (edit.result,)) if old not in edit.file else None
    return None


def a_line_that_is_gone(edit: Edit) -> Drifted | None:
    """The file has not one of the lines that are to be replaced."""
    changed = [line for line in edit.old.split("\n") if line.strip() and line not in edit.new.split("\n")]
    if not changed or edit.old.count(changed[0] + "\n") != 1 or len(edit.old.split("\n")) < 4:
        return None
    return Drifted(edit.file.replace(edit.old, edit.old.replace(changed[0] + "\n", "")), edit.old, edit.new, None)


def a_remark_in_place_of_code(edit: Edit) -> Drifted | None:
    """The new text has a remark where the old one has lines: they would be lost."""
    remark = _REMARKS.get(_language(edit))
    elided = _elided(edit, remark) if remark else None
    return elided and elided._replace(old=edit.old, expected=None, accepted=(edit.result,))


def lines_left_out_of_the_old_text_alone(edit: Edit) -> Drifted | None:
    """The old text has dots for lines that the new text has not at all."""
    elided = _elided(edit, "...")
    if elided is None:
        return None
    return elided._replace(new=elided.new.replace("...\n", "").replace("    ...", ""), expected=None)


DRIFTS: Final[Sequence[Callable[[Edit], Drifted | None]]] = (
    exact,
    blanks_at_line_ends_of_the_file,
    blanks_at_line_ends_of_the_edit,
    blanks_in_blank_lines,
    a_blank_line_left_out,
    a_blank_line_too_many,
    a_blank_line_before,
    a_blank_line_behind,
    no_indentation,
    less_indentation,
    more_indentation,
    four_spaces_more,
    spaces_for_tabs,
    two_spaces_for_tabs,
    eight_spaces_for_tabs,
    tabs_for_spaces,
    two_spaces_for_four,
    four_spaces_for_two,
    stripped,
    crlf_in_the_file,
    crlf_in_the_edit,
    crlf_and_no_indentation,
    no_line_end_at_the_end,
    line_end_of_the_old_text_alone,
    line_end_of_the_new_text_alone,
    line_ends_of_both,
    plain_quotes_and_dashes,
    typographic_quotes,
    no_break_spaces_in_the_file,
    no_break_spaces_in_the_edit,
    two_blanks_for_one,
    line_numbers,
    line_numbers_in_both,
    escaped_quotes,
    escaped_lines,
    dots_for_lines,
    a_comment_for_lines,
    a_remark_for_lines,
    moved_to_the_end,
    moved_and_deeper,
    twice_in_the_file,
    twice_but_for_indentation,
    another_word_in_a_kept_line,
    another_number_in_a_changed_line,
    a_letter_left_out,
    a_line_that_is_gone,
    a_remark_in_place_of_code,
    lines_left_out_of_the_old_text_alone,
)


# -- parts of an edit --------------------------------------------------------------------------------------------------


def _if_not_exact(
    edit: Edit,
    file: str,
    old: str,
    new: str,
    expected: str,
    accepted: tuple[str, ...] = (),
    *,
    blanks_at_ends: bool = False,
) -> Drifted | None:
    """Return the drifted edit, unless it is exact, or its lines are in the file twice once white space is left out."""
    if file.count(old) or _places(file, old) > 1:
        return None
    return Drifted(file, old, new, expected, accepted, blanks_at_ends)


def _places(file: str, old: str) -> int:
    squeezed_file, squeezed_old = (
        "\n".join("".join(line.split()) for line in text.split("\n") if line.strip()) for text in (file, old)
    )
    return f"\n{squeezed_file}\n".count(f"\n{squeezed_old}\n")


def _kept(edit: Edit) -> list[str]:
    """Return the lines, stripped, that both texts have, in their order."""
    new = {line.strip() for line in edit.new.split("\n")}
    lines = [line.strip() for line in edit.old.split("\n")]
    return [line for line in lines if line and line in new]


def _context(edit: Edit) -> tuple[str, str]:
    """Return the beginning and the end that both texts have, in whole lines."""
    old, new = edit.old.split("\n"), edit.new.split("\n")
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-tail - 1] == new[-tail - 1]:
        tail += 1
    return "\n".join(old[:head]), "\n".join(old[len(old) - tail :])


def _each_line(text: str, change: Callable[[str], str]) -> str:
    return "\n".join(map(change, text.split("\n")))


def _indents(text: str) -> set[str]:
    return {line[: len(line) - len(line.lstrip())] for line in text.split("\n") if line.strip()}


def _common_indent(edit: Edit) -> str:
    indents = _indents(edit.old) | _indents(edit.new)
    shortest = min(indents, key=len)
    return shortest if all(indent.startswith(shortest) for indent in indents) else ""


def _step(edit: Edit) -> str:
    """Return one step of the file's indentation."""
    indents = {indent for indent in _indents(edit.file) if indent}
    if any("\t" in indent for indent in indents):
        return "\t"
    return min(indents, key=len) if indents else "    "


def _is_regular(edit: Edit, step: str) -> bool:
    return all(not indent.replace(step, "") for indent in _indents(edit.old) | _indents(edit.new))


def _has_two_depths(edit: Edit) -> bool:
    return len({len(indent) for indent in _indents(edit.old)}) > 1


def _with_indent(line: str, step: str, other: str) -> str:
    body = line.lstrip()
    return line[: len(line) - len(body)].replace(step, other) + body


def _reindented(edit: Edit, change: Callable[[str], str]) -> Drifted | None:
    if not _begins_a_line(edit):
        return None
    return _if_not_exact(edit, edit.file, _each_line(edit.old, change), _each_line(edit.new, change), edit.result)


def _begins_a_line(edit: Edit) -> bool:
    return not edit.file[: edit.file.index(edit.old)].rpartition("\n")[2]


def _ends_a_line(edit: Edit) -> bool:
    return edit.file[edit.file.index(edit.old) + len(edit.old) :].startswith("\n")


def _is_whole_lines(edit: Edit) -> bool:
    return _begins_a_line(edit) and _ends_a_line(edit)


def _crlf(text: str) -> str:
    return text.replace("\n", "\r\n")


def _numbered(text: str, first: int, behind: str) -> str:
    lines = text.removesuffix("\n").split("\n")
    return "\n".join(f"{number:>5}{behind}{line}" for number, line in enumerate(lines, first))


def _language(edit: Edit) -> str:
    return edit.source.rpartition(".")[2]


def _elided(edit: Edit, mark: str) -> Drifted | None:
    """Return the edit with a mark for the longest run of lines that both texts keep, but for its first and last."""
    old, new = edit.old.split("\n"), edit.new.split("\n")
    best: tuple[int, int, int] | None = None
    for at in range(1, len(old)):
        for other in range(len(new)):
            length = 0
            while (
                at + length < len(old) - 1
                and other + length < len(new) - 1
                and old[at + length] == new[other + length]
                and old[at + length].strip()
            ):
                length += 1
            if length > 1 and other and (best is None or length > best[0]):
                best = (length, at, other)
    if best is None:
        return None
    length, at, other = best
    indent = old[at][: len(old[at]) - len(old[at].lstrip())]
    line = mark if mark == "..." else indent + mark
    pieces = ["\n".join(old[:at]).strip(), "\n".join(old[at + length :]).strip()]
    if not all(pieces) or any(_places(edit.file, piece) != 1 for piece in pieces):
        return None
    return Drifted(
        edit.file,
        "\n".join([*old[:at], line, *old[at + length :]]),
        "\n".join([*new[:other], line, *new[other + length :]]),
        edit.result,
    )


def _with_another_word(line: str) -> str:
    words = re.findall(r"[A-Za-z_]{4,}", line)
    return line.replace(words[-1], f"{words[-1]}_all", 1) if words else ""
