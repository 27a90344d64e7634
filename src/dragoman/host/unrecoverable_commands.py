"""Commands whose harm cannot be undone: refused in every mode, however they are spelled.

It is a net for accidents and for plain malice, not a proof: a program can delete what it likes without any of these
words. Confinement is the sandbox's trade. Where a target cannot be known (`rm -rf $X`), it counts as the worst one.
"""

import posixpath
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from dragoman.host.possible_commands import PossibleCommand, TooMuchToParse, commands_in
from dragoman.host.shell import Parsed
from dragoman.host.shell_lexer import HOLE
from dragoman.host.working_folder import WorkingFolders, without_proc

# Braces are spelled out up to this; more counts as the worst.
_BRACE_WORDS: Final = 64
# In one command, behind wrappers: each is looked at with all the words after it.
_JUDGED_NAMES: Final = 20


def is_unrecoverable(command: str | Parsed) -> str | None:
    """Return why a command must not run at all, or None."""
    text = command if isinstance(command, str) else command.text
    if "\0" in text:
        return "No command holds a NUL."
    try:
        return next(_reasons(commands_in(text)), _fork_bomb(text))
    except TooMuchToParse as reason:
        return f"It cannot be checked: {reason}."


def _fork_bomb(text: str) -> str | None:
    return "It starts itself again and again until nothing else runs." if _FORK_BOMB.search(text) else None


# A function that calls itself on both sides of a pipe.
_FORK_BOMB: Final = re.compile(r"(?<![\w:.])([\w:.]{1,40})\s*\(\s*\)\s*\{[^}]{0,200}?(?<![\w:.])\1\s*\|\s*\1(?![\w:.])")


def _words(text: str) -> list[str]:
    return text.split()


_SYSTEM: Final = frozenset(
    f"/{name}"
    for name in _words(
        "bin boot dev etc home lib lib32 lib64 libx32 opt proc root run sbin srv sys usr var mnt media nix snap"
        " Users System Library Applications Volumes private cores"
        " usr/bin usr/lib usr/lib32 usr/lib64 usr/libexec usr/local usr/sbin usr/share var/lib boot/efi"
    )
)
_HOMES: Final = ("/home", "/Users")
# More folders than a path climbs within a project.
_TO_THE_ROOT: Final = 5
# What bash has instead of `$PWD`, `$OLDPWD` and the folders of `pushd`.
_OTHER_FOLDER: Final = re.compile(r"~[+-]?[0-9]*(?<!~)(?=/|$)")
_ONLY_GLOB: Final = re.compile(r"[*?.]*[*?][*?.]*")
_DEVICE: Final = re.compile(
    r"/dev/(?:[shv]d[a-z]|xvd[a-z]|nvme\d|mmcblk\d|disk\d|rdisk\d|dm-\d|md\d|mapper/|disk/|loop\d|k?mem$|port$|nbd\d|sr\d)"
)
_SYSRQ: Final = "/proc/sysrq-trigger"


def _reasons(found: Sequence[PossibleCommand]) -> Iterator[str]:
    folders = WorkingFolders(_spellings)
    for possible in found:
        judged = 0
        folders.follow(possible)
        for target in (path for written in possible.written for path in folders.paths(written)):
            if _DEVICE.match(posixpath.normpath(target)) or posixpath.normpath(target) == _SYSRQ:
                yield f"It writes over {target}."
        for name, at in possible.names():
            judges = [judge for pattern, judge in _JUDGES if pattern.fullmatch(name)]
            if not judges:
                continue
            judged += 1
            if judged > _JUDGED_NAMES:
                raise TooMuchToParse("it names too many programs in one command")
            words = possible.words[at + 1 :]
            for each in [words, *folders.words_from(possible, at)]:
                yield from (reason for judge in judges if (reason := judge(each)))
            if name == "rm" and _is_recursive(words) and not _operands(words) and "xargs" in possible.words[:at]:
                yield from _fed_to_rm(found)


def _fed_to_rm(found: Sequence[PossibleCommand]) -> Iterator[str]:
    """Yield the reasons against `… | xargs rm -r`: what it is given stands among the words of the other commands."""
    given = (word for possible in found for word in (*possible.words, *possible.read))
    if any(_is_vital(word) or word in (".", "..") for word in given):
        yield _DELETES


_DELETES: Final = "It deletes more than can be brought back."


def _rm(words: Sequence[str]) -> str | None:
    if any("--no-preserve-root".startswith(word) and word.startswith("--no-p") for word in words):
        return _DELETES
    if not _is_recursive(words):
        return None
    return _DELETES if any(_is_vital(word) or _is_here(word) for word in _operands(words)) else None


def _find(words: Sequence[str]) -> str | None:
    deletes = "-delete" in words or any(
        word in ("-exec", "-execdir", "-ok", "-okdir") and words[at + 1 : at + 2] and _is_rm(words[at + 1])
        for at, word in enumerate(words)
    )
    filtered = any(word in _FIND_FILTERS for word in words)
    starts = _before_options(words)
    if not deletes:
        return None
    return _DELETES if any(_is_vital(word) for word in starts) or (not filtered and _any_here(starts)) else None


_FIND_FILTERS: Final = frozenset(
    f"-{name}"
    for name in _words("name iname path ipath wholename regex iregex type size mtime mmin atime ctime newer empty user")
)


def _before_options(words: Sequence[str]) -> list[str]:
    starts: list[str] = []
    for word in words:
        if word.startswith(("-", "(", "!")):
            break
        starts.append(word)
    return starts or ["."]


def _any_here(words: Sequence[str]) -> bool:
    return any(_is_here(word) for word in words)


def _is_rm(word: str) -> bool:
    return posixpath.basename(word) in ("rm", "shred", "unlink")


def _unknown_program(words: Sequence[str]) -> str | None:
    """Return whether a program may be `rm`: by its name, or because an expansion makes the name."""
    return _DELETES if _is_recursive(words) and any(_is_root(word) for word in _operands(words)) else None


def _recursively(words: Sequence[str]) -> str | None:
    if _is_recursive(words) and any(_is_vital(word) for word in _operands(words)):
        return "It changes who may do what on the whole machine."
    return None


def _overwrites(words: Sequence[str]) -> str | None:
    for word in words:
        target = posixpath.normpath(word.removeprefix("of=")) if word else word
        if _DEVICE.match(target) or target == _SYSRQ:
            return f"It writes over {target}."
    return None


def _shred(words: Sequence[str]) -> str | None:
    return _DELETES if any(_is_vital(word) for word in _operands(words)) else None


def _mv(words: Sequence[str]) -> str | None:
    """Judge what `mv` moves; a name that cannot be known is hardly vital, since loops are full of such names."""
    moved = _operands(words) if any(word.startswith(("-t", "--target")) for word in words) else _operands(words)[:-1]
    return "It moves away what nothing works without." if any(map(_is_known_vital, moved)) else None


def _rsync(words: Sequence[str]) -> str | None:
    deletes = any(word.startswith("--del") for word in words)
    return _DELETES if deletes and any(map(_is_known_vital, _operands(words)[-1:])) else None


def _is_known_vital(word: str) -> bool:
    return HOLE not in word and _is_vital(word)


def _wipes_by(*marks: str) -> Callable[[Sequence[str]], str | None]:
    """Return a judge of programs that wipe a disk if one of their words begins like this."""
    return lambda words: "It wipes a disk." if any(word.startswith(marks) for word in words) else None


def _fdisk(words: Sequence[str]) -> str | None:
    lists = {"-l", "--list", "-x", "--list-details", "-s", "-h", "--help", "-V", "--version"} & set(words)
    return "It wipes a disk." if _operands(words) and not lists else None


def _crontab(words: Sequence[str]) -> str | None:
    return "It deletes every timed job of the user." if "-r" in words else None


def _killall5(words: Sequence[str]) -> str | None:
    return "It ends every process."


def _formats(words: Sequence[str]) -> str | None:
    return None if {"--help", "-V", "--version", "-n", "--no-act"} & set(words) else "It wipes a disk."


def _halts(words: Sequence[str]) -> str | None:
    return None if "--help" in words else "It stops the machine."


def _init(words: Sequence[str]) -> str | None:
    return "It stops the machine." if {"0", "6"} & set(words) else None


def _systemctl(words: Sequence[str]) -> str | None:
    halts = {"poweroff", "reboot", "halt", "kexec", "suspend", "hibernate", "rescue", "emergency", "isolate"}
    return "It stops the machine." if halts & set(words) else None


def _kill(words: Sequence[str]) -> str | None:
    operands = [word for word in words if not re.fullmatch(r"-([A-Z]+[A-Z0-9+]*|[0-9]+|[sn])", word)]
    every_process = "-1" in operands or (words[-1:] == ("-1",) and len(words) > 1)
    return "It ends every process." if every_process else None


_JUDGES: Final[Sequence[tuple[re.Pattern[str], Callable[[Sequence[str]], str | None]]]] = [
    (re.compile(pattern, re.DOTALL), judge)
    for pattern, judge in {
        "rm|srm|wipe": _rm,
        "shred": _shred,
        "mv": _mv,
        "rsync": _rsync,
        "crontab": _crontab,
        "killall5": _killall5,
        "cryptsetup": _wipes_by("luksFormat", "luksErase", "erase"),
        "[lpv]vremove|vgremove": _formats,
        "zpool|zfs": _wipes_by("destroy"),
        "nvme": _wipes_by("format", "sanitize"),
        "hdparm": _wipes_by("--security-erase", "--trim-sector"),
        "parted": _wipes_by("mklabel", "mktable", "mkpart", "rm", "resizepart"),
        "fdisk|gdisk|cfdisk|cgdisk": _fdisk,
        "diskutil": _wipes_by("erase", "secureErase", "zeroDisk", "randomDisk", "partitionDisk", "deleteVolume"),
        "mdadm": _wipes_by("--zero-superblock"),
        "badblocks": _wipes_by("-w"),
        "find": _find,
        f".*{HOLE}.*": _unknown_program,
        "chmod|chown|chgrp|setfacl|chattr": _recursively,
        "dd|tee|cp|mv|shred|install|truncate": _overwrites,
        r"mkfs(\..*)?|mke2fs|mkswap|wipefs|blkdiscard|sgdisk|sfdisk|newfs.*": _formats,
        "shutdown|reboot|halt|poweroff": _halts,
        "init|telinit": _init,
        "systemctl|loginctl": _systemctl,
        "kill": _kill,
    }.items()
]


_RECURSIVE: Final = re.compile(r"-[A-Za-z]*[rR][A-Za-z]*|--r(e(c(u(r(s(i(ve?)?)?)?)?)?)?)?")


def _is_recursive(words: Sequence[str]) -> bool:
    for word in words:
        if word == "--":
            return False
        if word.startswith("-") and _RECURSIVE.fullmatch(word):
            return True
    return False


def _operands(words: Sequence[str]) -> list[str]:
    """Return what is no option; after `--` everything."""
    if "--" in words:
        at = list(words).index("--")
        return [word for word in words[:at] if not word.startswith("-")] + list(words[at + 1 :])
    return [word for word in words if not word.startswith("-")]


def _is_vital(word: str) -> bool:
    """Return whether a path may be the root, a folder of the system, a home, or anything at all."""
    return any(_is_vital_path(path) for path in _spellings(word))


def _is_root(word: str) -> bool:
    return any(path.replace(HOLE, "") and _is_vital_path(path) for path in _spellings(word))


def _is_here(word: str) -> bool:
    """Return whether a path may be the folder the command runs in, one above it, or all that is in it."""
    for path in _spellings(word):
        normal = posixpath.normpath(path.replace(HOLE, "")) if path else "."
        parts = normal.split("/")
        while parts and parts[0] == "..":
            parts = parts[1:]
        if parts in ([], ["."]) or (len(parts) == 1 and _ONLY_GLOB.fullmatch(parts[0])):
            return True
    return False


def _is_vital_path(path: str) -> bool:
    if _OTHER_FOLDER.match(path):
        path = _OTHER_FOLDER.sub(HOLE, path)
    if path.startswith("~"):
        rest = [part for part in path.split("/")[1:] if part.replace(HOLE, "") not in ("", ".")]
        return not rest or ".." in rest or (len(rest) == 1 and bool(_ONLY_GLOB.fullmatch(rest[0])))
    known = path.replace(HOLE, "")
    if HOLE in path and not known.strip("/.*?"):
        return True
    if not known.startswith("/"):
        return _climbs_to_vital(known)
    parts = posixpath.normpath("/" + known.lstrip("/")).split("/")[1:]
    while parts and (_ONLY_GLOB.fullmatch(parts[-1]) or parts[-1] == ""):
        parts = parts[:-1]
    if not parts:
        return True
    if len(parts) == 1 and any(character in parts[0] for character in "*?["):
        return True
    normal = "/" + "/".join(parts)
    return normal in _SYSTEM or (len(parts) == 2 and "/" + parts[0] in _HOMES)


def _climbs_to_vital(path: str) -> bool:
    """Return whether a relative path goes up so far that what it names may stand in the root."""
    parts = posixpath.normpath(path).split("/")
    above = next((at for at, part in enumerate(parts) if part != ".."), len(parts))
    return above >= _TO_THE_ROOT and "/" + "/".join(parts[above:]) in _SYSTEM


def _spellings(word: str) -> list[str]:
    """Return what braces make of a word, with the links of /proc followed."""
    return [without_proc(path) for path in _choices(word)]


def _choices(word: str) -> list[str]:
    words = [word]
    for _ in range(_BRACE_WORDS):
        at = next((at for at, path in enumerate(words) if _BRACES.search(path)), None)
        if at is None:
            return words
        path = words.pop(at)
        match = _BRACES.search(path)
        assert match is not None
        words += [path[: match.start()] + choice + path[match.end() :] for choice in match[1].split(",")]
        if len(words) > _BRACE_WORDS:
            break
    return ["/"]


_BRACES: Final = re.compile(r"\{([^{}]*,[^{}]*)\}")
