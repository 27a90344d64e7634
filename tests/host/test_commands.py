"""What may run unasked, what an answer covers, and what is never run."""

import time

import pytest

from dragoman.host.command_rules import (
    covers,
    denies,
    is_read_only,
    is_unrecoverable,
    paths_in,
    paths_of,
    prefix_of,
    prefixes,
    read_paths,
)
from dragoman.host.shell import Parsed, Simple, parse


def only(command: str) -> Simple:
    result = parse(command)
    assert isinstance(result, Parsed), result
    (simple,) = result.commands
    return simple


@pytest.mark.parametrize(
    ("command", "paths"),
    [
        ("ls", ()),
        ("ls -la --color=auto src", ("src",)),
        ("cat a /etc/passwd", ("a", "/etc/passwd")),
        ("head -n 5 a", ("a",)),
        ("head -20 a", ("a",)),
        ("wc -l a", ("a",)),
        ("pwd", ()),
        ("echo --- /etc/passwd", ()),
        ("grep -rn '/api' src", ("src",)),
        ("grep -e x -f /patterns a", ("/patterns", "a")),
        ("grep -f/patterns a", ("/patterns", "a")),
        ("rg -i x -g '*.py' src", ("src",)),
        ("rg --files src", ("src",)),
        ("find . -name '*.py' -not -path './x/*' -type f", (".",)),
        ("find /etc -newer /x", ("/etc", "/x")),
        ("git status -sb", ()),
        ("git --no-pager diff --stat HEAD~1 -- src", ("HEAD~1", "src")),
        ("git diff /etc/passwd /etc/hosts", ("/etc/passwd", "/etc/hosts")),
        ("git log --oneline -5", ()),
        ("git log --format='%h %s' -n 3", ()),
        ("git show HEAD:a", ("HEAD:a",)),
        ("git branch -a", ()),
        ("git branch --list 'x*'", ()),
        ("git tag", ()),
        ("sort -k2 -n -r a", ("a",)),
        ("uniq -c a", ("a",)),
        ("stat -c '%a' a", ("a",)),
        ("file -b a", ("a",)),
        ("which python", ()),
        ("test -f a", ("-f", "a")),
        ("sed -n '1,20p' a", ("a",)),
        ("sed -n -e '5p;$p' a", ("a",)),
        ("date +%s", ()),
        ("printf '%s\\n' a", ()),
        ("command -v rm", ()),
        ("cat < in 2>/dev/null", ("in",)),
        ("cut -d/ -f2 a", ("a",)),
    ],
)
def test_what_only_reads_is_known_with_its_paths(command: str, paths: tuple[str, ...]) -> None:
    assert is_read_only(only(command))
    assert read_paths(only(command)) == paths


MORE_THAN_READING = [
    *("find . -exec rm {} \\;", "find . -execdir x \\;", "find . -ok x \\;", "find . -okdir x \\;", "find . -delete"),
    *("find . -fprintf f x", "find . -fls f", "find . -fprint f", "find . -fprint0 f", "find -L . -name x"),
    *("find . -name x -delete", "find . -files0-from f", "find -D exec ."),
    *(
        "sed -n 'w f' a",
        "sed e a",
        "sed '1e ls' a",
        "sed -i s/a/b/ a",
        "sed s/a/b/e a",
        "sed s/a/b/w\\ f a",
        "sed -f s a",
    ),
    *("sed -n '1,5p;w f' a", "sed --in-place 1p a", "sed -n '1r /etc/passwd' a", "sed 1p -i a", "sed -s -n -i 1p a"),
    *(
        "rg --pre x y",
        "rg --pre=x y",
        "rg -z x",
        "rg --search-zip x",
        "rg --hostname-bin=x y",
        "rg -L x",
        "rg --follow x",
    ),
    *("git -c core.pager=x status", "git -C /x status", "git --exec-path=/x status", "git --git-dir=/x status"),
    *(
        "git --upload-pack=x fetch",
        "git fetch --upload-pack x",
        "git diff --ext-diff",
        "git diff --ext-d",
        "git -p log",
    ),
    *("git log --output=f", "git log --outpu=f", "git diff --output f", "git log --textconv", "git show --textconv"),
    *("git log --show-signature", "git log --format=%G?", "git diff -O/x", "git diff --no-index a b", "git grep -O x"),
    *(
        "git grep --open-files-in-pager=x y",
        "git branch x",
        "git branch -l x",
        "git branch -D x",
        "git branch -v x",
        "git branch -m a b",
    ),
    *(
        "git tag x",
        "git tag -d x",
        "git tag -v x",
        "git remote add a b",
        "git remote show a",
        "git stash",
        "git stash pop",
    ),
    *("git config user.name x", "git checkout .", "git push", "git commit", "git add .", "git blame --contents /x a"),
    *(
        "git ls-files -X /x",
        "git ls-remote x",
        "git archive -o f HEAD",
        "git bisect run x",
        "git reflog expire",
        "git x",
    ),
    *("git rev-parse --parseopt", "git worktree add x", "git status --foo", "git", "git cat-file --textconv x"),
    *(
        "sort -o f a",
        "sort -of a",
        "sort --output=f a",
        "sort --outp=f a",
        "sort --compress-program=x a",
        "sort -T /x a",
    ),
    *("sort --files0-from=f", "sort -nof a", "uniq a b", "file -m x a", "file -C -m x", "file -z a", "file -f list"),
    *("file --magic-file=x a", "man -P x y", "less a", "more a", "tar xf a", "tar --to-command=x -xf a", "awk 1 a"),
    *("awk 'BEGIN{system(\"x\")}'", "xargs ls", "env", "env ls", "nice ls", "timeout 5 ls", "watch ls", "setsid ls"),
    *("sudo ls", "busybox ls", "nohup ls", "stdbuf -o0 ls", "sh -c ls", "bash x", "python x", "node -e 1", "vim a"),
    *(
        "tee f",
        "cp a b",
        "mv a b",
        "rm a",
        "touch a",
        "mkdir a",
        "ln a b",
        "chmod +x a",
        "dd if=a",
        "split a",
        "xxd a b",
    ),
    *(
        "/bin/ls",
        "./ls",
        "ls.exe",
        "cd /x",
        "export A=1",
        "printenv",
        "ps e",
        "tree -o f",
        "date -s x",
        "date 01010101",
    ),
    *(
        "hostname x",
        "test -v 'a[$(ls)]'",
        "[ -v 'a[$(ls)]' ]",
        "printf -v PATH x",
        "printf %n PATH",
        "printf '%-5n' PATH",
    ),
    *(
        "command ls",
        "wc --files0-from=f",
        "grep -R x .",
        "diff -r a b",
        "diff --to-file=x a",
        "md5sum -c f",
        "strings @f",
    ),
    *("curl x", "wget x", "nc x", "ssh x", "date -f /x", "jq . a", "ls > f", "ls >> f", "ls &> f", "ls <> f", "A=1 ls"),
    *("cat *", "sort *", "ls -*", "rg x *", "uniq a{1,2}", "sort {-o,x}", "git log [-]x"),
]


@pytest.mark.requirement("H1")
@pytest.mark.parametrize("command", MORE_THAN_READING)
def test_what_can_do_more_than_read_is_not_read_only(command: str) -> None:
    simple = only(command)
    assert not is_read_only(simple)
    assert read_paths(simple) is None


@pytest.mark.requirement("H1")
@pytest.mark.parametrize("command", [command for command in MORE_THAN_READING if len(only(command).argv) > 1])
def test_no_rule_for_a_bare_name_covers_it(command: str) -> None:
    argv = only(command).argv
    rules = [argv[:1], *([argv[:2]] if len(argv) > 2 else [])]
    assert not covers([rules[0]], parse(command), readable=lambda path: True)
    if argv[:2] not in (("git", "commit"), ("git", "add")):
        assert not covers(rules, parse(command), readable=lambda path: True)


def test_globs_may_be_listed_but_what_is_read_is_unknown() -> None:
    simple = only("ls src/*.py")
    assert is_read_only(simple)
    assert read_paths(simple) is None


@pytest.mark.parametrize(
    ("command", "paths"),
    [
        ("git status | head -5", ()),
        ("cat a | grep x; wc -l b && ls c", ("a", "b", "c")),
        ("cd sub && cat a /b", ("sub", "sub/a", "/b", "a", "/b")),
        ("cd sub", None),
        ("cd sub && git status", None),
        ("cd - && ls", None),
        ("cd && ls", None),
        ("ls; cd sub", None),
        ("ls; rm a", None),
        ("echo $X", None),
    ],
)
def test_a_line_reads_what_its_commands_read(command: str, paths: tuple[str, ...] | None) -> None:
    assert paths_of(parse(command)) == paths


@pytest.mark.parametrize(
    ("command", "prefix"),
    [
        ("git status -s", ("git", "status")),
        ("git --no-pager status", ("git", "--no-pager", "status")),
        ("ls -la", ("ls",)),
        ("git commit -m 'a b'", ("git", "commit")),
        ("git push --force", ("git", "push", "--force")),
        ("npm test", ("npm", "test")),
        ("pytest -q tests", ("pytest",)),
        ("pytest -p evil", ("pytest", "-p", "evil")),
        ("python x.py", ("python", "x.py")),
        ("cd x", ()),
        ("export A=1", ()),
        ("A=1 make", ("A=1", "make")),
        ("make > log", ()),
        ("rm *", ()),
    ],
)
def test_always_is_about_as_little_as_makes_sense(command: str, prefix: tuple[str, ...]) -> None:
    assert prefix_of(only(command)) == prefix


def test_always_about_a_line_is_about_each_command_or_about_none() -> None:
    assert prefixes(parse("git add a && git commit -m b && git add c")) == (("git", "add"), ("git", "commit"))
    assert prefixes(parse("make; cd x")) == ()
    assert prefixes(parse("make $X")) == ()


@pytest.mark.parametrize(
    "command",
    [
        "git status",
        "git status -s",
        "git  status",
        "git status 2>/dev/null",
        "git status | head -5",
        "git status; git status -b",
    ],
)
def test_a_rule_covers_what_was_meant(command: str) -> None:
    assert covers([("git", "status")], parse(command))


@pytest.mark.requirement("F6")
@pytest.mark.parametrize(
    "command",
    [
        *("git status; rm x", "git status && make", "git status | sh", "git  status\nrm x", "git status & rm x"),
        *("GIT_DIR=/x git status", "git -c core.pager=x status", "git status > f", "git status --foo", "git stat"),
        *("git status $(rm x)", "git status `rm x`", "git status $X", "git status *", "git -C /x status", "git diff"),
        *("PATH=.; git status", "export PATH=.; git status", "cd /x && git status", "./git status", "/bin/git status"),
        *(
            "sudo git status",
            "git status; cat /etc/passwd",
            "git status < f",
            "git status\r",
            "ls",
            "hash -p x git; git status",
        ),
    ],
)
def test_a_rule_covers_nothing_more(command: str) -> None:
    assert not covers([("git", "status")], parse(command))


def test_a_rule_covers_exactly_the_words_it_has() -> None:
    rule = ("npm", "run", "build")
    assert covers([rule], parse("npm run build"))
    assert not covers([rule], parse("npm run build --script-shell=x"))
    assert not covers([()], parse("ls"))


@pytest.mark.parametrize(
    "command",
    ["echo evil | bash", "echo evil |& bash", "make | cat - | bash", "ls; echo evil | bash", "cat x | bash && make"],
)
def test_a_rule_covers_no_program_that_is_fed_what_the_user_has_not_seen(command: str) -> None:
    assert not covers([("bash",), ("echo",), ("make",)], parse(command), readable=lambda path: True)
    assert prefixes(parse(command)) == ()


def test_a_rule_covers_a_program_that_is_fed_by_what_has_a_rule() -> None:
    rules = [("make",), ("tee", "log"), ("grep",)]
    assert covers(rules, parse("make 2>&1 | tee log | grep error"))
    assert not covers(rules, parse("echo x | tee log"))
    assert prefixes(parse("make 2>&1 | tee log")) == (("make",), ("tee", "log"))
    assert covers(rules, parse("echo a; make"))


RULES = [("npm", "test"), ("make",), ("git", "add"), ("git", "commit"), ("pytest",), ("bash",)]


def in_workspace(path: str) -> bool:
    return not path.startswith(("/", "..", "~"))


@pytest.mark.parametrize(
    "command",
    [
        *("cd src && npm test", "(cd src && npm test); npm test", "cd ./src; make", "npm test && cat src/a", "! make"),
        *("for i in 1 2 3; do npm test; done", "while make; do npm test; done", "if make; then npm test; else ls; fi"),
        *(
            "case $X in a) make;; *) npm test;; esac",
            "{ make; npm test; } 2>/dev/null",
            "t() { make; npm test; }; t; t x",
        ),
        *('git commit -m "$(cat <<\'E\'\nit\'s (a) "message"\nE\n)"', 'git commit --message="a $(git status)"'),
        *(
            "make; cat <<E\ntext\nE",
            'make && echo "done: $(git log -1)"',
            "make | (grep a; cat)",
            "for f in *; do make; done",
        ),
    ],
)
def test_rules_cover_a_line_of_which_they_cover_every_command(command: str) -> None:
    assert covers(RULES, parse(command), readable=in_workspace)
    assert covers(prefixes(parse(command)), parse(command), readable=in_workspace)


@pytest.mark.parametrize(
    "command",
    [
        *(
            "cd /x && npm test",
            "cd && npm test",
            "cd - && make",
            "cd $X && make",
            "cd src/.. && make",
            "pushd src; make",
        ),
        # Git runs what the folder's configuration says, and words that name files name others there.
        *("cd src && git add a", "(cd src; git status) && make", "cd src && bash", "cd src && pytest tests/a.py"),
        *("for i in 1; do npm test; rm x; done", "if make; then rm x; fi", "t() { make; rm x; }; make", "make $(rm x)"),
        *(
            "make `rm x`",
            'git commit -m "$(rm x)"',
            "make <(rm x)",
            "case a in a) make;; b) rm x;; esac",
            "(make; rm x)",
        ),
        # What a word is depends on more than the text.
        *('make "$(cat a)"', 'git commit "$(cat a)"', 'git commit -m"$(cat a)"', 'git commit -m "$X"', "make $X"),
        *("for i in 1; do make $i; done", 'pytest "$(cat a)"', 'npm "$(cat a)"', '"$(cat a)" test', "cat $X; make"),
        # What is fed to a program, and what is written.
        *("bash <<E\nrm x\nE", "bash <<< 'rm x'", "{ bash; } <<E\nrm x\nE", "{ bash; } < a", "echo rm x | { bash; }"),
        *("echo rm x | (make; bash)", "echo rm x | if make; then bash; fi", "cat a | for i in 1; do bash; done"),
        *(
            'echo rm x | cat "$(bash)"',
            "{ make; } > a",
            "for i in 1; do make; done >> a",
            "make > >(cat)",
            "make <<< a",
        ),
        # Functions and variables that take the place of what was meant.
        *(
            "npm() { make; }; npm test",
            "t() { make; }; npm test; t | bash",
            "cat() { make; }; make; cat a",
            "PATH=.; make",
        ),
        *("make; t() { npm test; }; export -f t", "for path in .; do make; done; X=1", "CI=1 make", "X=$(make)"),
    ],
)
def test_rules_do_not_cover_a_line_with_anything_else(command: str) -> None:
    assert not covers(RULES, parse(command), readable=in_workspace)


def test_an_assignment_is_covered_by_a_rule_that_begins_with_it() -> None:
    assert prefixes(parse("FOO=1 pytest -q")) == (("FOO=1", "pytest"),)
    rules = [("FOO=1", "pytest"), ("A=x y", "B=", "make")]
    assert covers(rules, parse("FOO=1 pytest -x tests"))
    assert covers(rules, parse("A='x y' B= make"))
    for command in ("pytest", "FOO=2 pytest", "FOO=1 BAR=1 pytest", "FOO=1 make", "B= A='x y' make", "FOO+=1 pytest"):
        assert not covers(rules, parse(command))
    assert not covers(rules, parse("'FOO=1' pytest"))
    assert not covers([("pytest",)], parse("FOO=1 pytest"))


@pytest.mark.parametrize(
    "name",
    [
        *("PATH", "LD_PRELOAD", "PYTHONPATH", "PYTHONSTARTUP", "GIT_DIR", "IFS", "ENV", "NODE_OPTIONS", "npm_config_x"),
        *("PYTEST_ADDOPTS", "CC", "GOFLAGS", "RUSTC_WRAPPER", "EDITOR", "GIT_PAGER", "JAVA_TOOL_OPTIONS", "HOME"),
        *("http_proxy", "XDG_CONFIG_HOME", "PERL5OPT", "RUBYOPT", "PYTEST_PLUGINS", "MAKEFLAGS", "LESSOPEN", "TMPDIR"),
    ],
)
def test_a_variable_that_may_change_what_runs_is_never_covered(name: str) -> None:
    assert prefixes(parse(f"{name}=1 make")) == ()
    assert not covers([(f"{name}=1", "make")], parse(f"{name}=1 make"))


@pytest.mark.parametrize(
    ("command", "paths"),
    [
        ("for i in 1 2; do cat a; done", ("a",)),
        ("if grep -q x a; then cat b; fi < c", ("a", "b", "c")),
        ("(cd sub; cat a); cat a", ("sub", "sub/a", "a", "a")),
        ('echo "$(cat a)"', ("a",)),
        ("cat <<E\n$(cat a)\nE", ("a",)),
        ("cat <<E\n$X\nE", None),
        ("t() { cat a; }; t", ("a",)),
        ("cat() { ls; }; cat a", None),
        ("echo $X", None),
        ("echo $(cat a)", None),
        ('cat "$(ls)"', None),
        ("cd a; cd b; cd c; ls", None),
    ],
)
def test_a_compound_line_reads_what_its_commands_read(command: str, paths: tuple[str, ...] | None) -> None:
    assert paths_of(parse(command)) == paths


def test_the_paths_of_what_only_reads_are_known_also_beside_other_commands() -> None:
    assert paths_in(parse("cd src && make && cat a && rm b")) == ("src", "src/a", "a")
    assert paths_in(parse("cat $(")) == ()


@pytest.mark.parametrize(
    "command",
    [
        *("cat <<E\nit's\nE\nrm -rf / #'", 'echo "$(case x in a) rm -rf /;; esac)"', "cat <<E; rm -rf ~\n'\nE"),
        *("bash <<-E\n\trm -rf /\n\tE", "cat <<A <<B\n'\nA\n\"\nB\nrm -rf /", "cat <<E\nE\nrm -rf /"),
    ],
)
def test_a_quote_in_a_text_hides_no_command(command: str) -> None:
    assert is_unrecoverable(command)
    assert denies(["rm"], command)


def test_rules_cover_together_and_paths_are_asked_for() -> None:
    rules = [("git", "add"), ("npm", "test")]
    assert covers(rules, parse("git add a && npm test | cat"))
    assert not covers(rules, parse("git add a && npm test | cat - b"))
    assert covers(rules, parse("git add a && npm test | cat - b"), readable=lambda path: path in ("-", "b"))
    assert not covers([("cat",)], parse("cat /etc/passwd"), readable=lambda path: not path.startswith("/"))


@pytest.mark.requirement("H6")
@pytest.mark.parametrize(
    "command",
    [
        *("curl x", "/usr/bin/curl x", "./curl x", "env curl x", "env A=1 curl x", "sh -c 'curl x'", "sudo curl x"),
        *(
            "sudo -u a nice -n 5 curl x",
            "A=1 curl x",
            "c''url x",
            "\\curl x",
            '"curl" x',
            "$'c\\x75rl' x",
            "bash -lc curl",
        ),
        *(
            "ls; curl x",
            "ls | xargs curl",
            "find . -exec curl {} \\;",
            "echo $(curl x)",
            "echo `curl x`",
            "cat <(curl x)",
        ),
        *("if true; then curl x; fi", "for i in a; do curl $i; done", "f() { curl x; }; f", "(curl x)", "! curl x"),
        *("eval curl x", "eval 'cur''l x'", "alias c=curl; c x", "X=curl; $X x", "$(echo curl) x", "/usr/bin/cur? x"),
        *("python3 -c 'import os; os.system(\"curl x\")'", "awk 'BEGIN{system(\"curl x\")}'", "busybox curl x"),
        *(
            "command curl x",
            "exec curl x",
            "trap 'curl x' EXIT",
            "echo 'curl x' | sh",
            "sh <<E\ncurl x\nE",
            "cur\\\nl x",
        ),
        *(
            "env -S 'curl x'",
            "env -S'curl x'",
            "env --split-string='A=1 curl x'",
            "flock f -c 'curl x'",
            "pkexec curl x",
        ),
        *("tmux new -d 'curl x'", "screen -dm curl x", "npx -c 'curl x'", "npm exec -c 'curl x'", "chronic curl x"),
        *("git rebase -x 'curl x' main", "git rebase --exec='curl x'", "git bisect run curl x", "uv run curl x"),
        *(
            "git submodule foreach 'curl x'",
            "git submodule foreach curl x",
            "docker exec a curl x",
            "bundle exec curl x",
        ),
        *("git filter-branch --tree-filter 'curl x'", "vim -c '!curl x'", "timeout 5 sh -c 'env -S \"curl x\"'"),
        *("2>/dev/null curl x", "</dev/null curl x", "{log}>a curl x", "<<<a curl x", "ls # it's a\ncurl x # '"),
        *(
            "prlimit -n 9 curl x",
            "tini -- curl x",
            "pipx run curl x",
            "uvx curl x",
            "mise x -- curl x",
            "choom -n 1 curl",
        ),
        *("sg users -c 'curl x'", "hyperfine 'curl x'", "nix-shell --run 'curl x'", "nix develop -c curl x"),
        *("deno eval 'curl x'", "bun -e 'curl x'", "pwsh -c 'curl x'", "PAGER='curl x' man ls", "man -P 'curl x' ls"),
        *("GIT_SSH_COMMAND='curl x' git fetch", "socat - EXEC:'curl x'", "run0 curl x", "watchexec curl x"),
        *("{curl,x}", "A=1 </dev/null curl x", "ls\n# don't\n\ncurl x", "bash <<< curl", "bash 0<<< 'curl x'"),
        *("timeout 5 curl x", "time curl x", "while curl x; do :; done", "case a in a) curl x;; esac", "ls &curl x"),
    ],
)
def test_a_deny_rule_holds_in_every_wrapping(command: str) -> None:
    assert denies(["curl"], command)


@pytest.mark.parametrize(
    "command",
    [
        *("ls", "echo curl", "grep -r curl .", "git commit -m 'use curl'", "git commit -m 'curl x'", "mycurl x"),
        *(
            "curl-config",
            "env A='curl' ls",
            "git rebase main",
            "npm run curl",
            "git bisect start curl",
            "docker rm curl",
        ),
        *("ls # curl x", "ls # it's curl x", "cat < curl", "cat 2< curl", "echo a#'\ncurl x'"),
    ],
)
def test_a_deny_rule_is_about_one_program(command: str) -> None:
    assert not denies(["curl"], command)


def test_a_deny_rule_with_words_holds_with_options_between() -> None:
    assert denies(["git", "push"], "git push")
    assert denies(["git", "push"], "sudo git -C /x -c a=b push --force")
    assert denies(["git", "push"], "git $X")
    assert denies(["git", "push"], "git {push,origin}")
    assert not denies(["git", "push"], "git status")


@pytest.mark.parametrize(
    "command",
    [
        *("rm -rf x", "rm -fr x", "rm -r -f x", "rm -f x -R", "rm -rfv x", "rm -Rf x", "rm --recursive --force x"),
        *("rm --force -r x", "rm {-rf,x}", "rm -{r,f} x", "rm -r $X", "rm -r --forc x"),
    ],
)
def test_a_deny_rule_with_letters_for_options_holds_however_they_are_given(command: str) -> None:
    assert denies(["rm", "-rf"], command)
    assert denies(["rm", "-rf", "*"], f"{command} y", wild=True)


@pytest.mark.parametrize("command", ["rm -r x", "rm -f x", "rm x rf", "rm --recurse-not x", "rm -i x"])
def test_a_deny_rule_with_letters_for_options_is_about_all_of_them(command: str) -> None:
    assert not denies(["rm", "-rf"], command)


@pytest.mark.requirement("H4")
@pytest.mark.parametrize("count", [51, 1_000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_deny_rules_apply_to_long_chains(count: int) -> None:
    chain = ";".join(["ls"] * (count - 1))
    assert denies(["rm"], f"{chain};rm x")
    assert denies(["rm"], f"rm x;{chain}")
    assert not denies(["rm"], chain)
    assert is_unrecoverable(f"{chain};rm -rf /")


@pytest.mark.requirement("H4")
def test_what_is_too_long_to_run_is_denied() -> None:
    assert denies(["rm"], "x" * 1024 * 1024)
    assert is_unrecoverable("x" * 1024 * 1024)


@pytest.mark.parametrize(
    "text",
    [
        *("$(" * 10_000, "`" * 20_001, "bash -c '" * 2_000, "sudo " + "x " * 10_000, "eval " * 4_000, "${" * 10_000),
        *("x " * 10_000 + "| bash", "'" * 20_000, "((((:(){" * 2_500, "rm -r " + "{a,b}" * 4_000, "sudo rm " * 2_500),
        *(
            "$( #" * 20_000,
            "# '\n" * 20_000,
            "cd a;" * 20_000,
            "{ " * 30_000,
            "pushd {a,b,c,d,e,f,g,h}{a,b};" + "rm -r y;" * 10_000,
            "cd /" + "../" * 30_000,
        ),
    ],
    ids=lambda text: text[:8],
)
def test_looking_through_any_text_ends_soon(text: str) -> None:
    """Usually a tenth of a second; the square of this length would be a minute."""
    start = time.process_time()
    is_unrecoverable(text)
    denies(["curl"], text)
    assert time.process_time() - start < 2


UNRECOVERABLE = [
    *(
        "rm -rf /",
        "rm -rf /*",
        "rm -rf ~",
        "rm -rf ~/",
        "rm -rf ~/*",
        "rm -rf $HOME",
        'rm -rf "$HOME"',
        "rm -rf ${HOME}/",
    ),
    *(
        "rm -rf .",
        "rm -rf ..",
        "rm -rf ./",
        "rm -rf *",
        "rm -rf ./*",
        "rm -rf ../..",
        "rm -r -f /",
        "rm / -rf",
        "rm -R /",
    ),
    *("rm --recursive --force /", "rm --rec /", "rm -fr -- /", "sudo rm -rf /", "sudo -u root env X=1 rm -rf /"),
    *("/bin/rm -rf /", "r''m -rf /", "\\rm -rf /", '"rm" -"rf" "/"', "rm -rf //", "rm -rf /./", "rm -rf /usr/.."),
    *("rm -rf /usr", "rm -rf /home/alice", "rm -rf /home/*", "rm -rf ~root", "rm -rf ~/../..", "rm -rf x /"),
    *("sh -c 'rm -rf /'", 'bash -lc "rm -rf ~"', "sudo sh -c 'cd / && rm -rf *'", "sh -c \"sh -c 'rm -rf /'\""),
    *("echo $(rm -rf /)", "echo `rm -rf /`", 'x=$(rm -rf "$HOME")', 'echo "${X:-$(rm -rf /)}"', "cat <(rm -rf /)"),
    *("rm -rf $X", 'rm -rf "$X/"', 'rm -rf "$X"/*', "rm -rf $(pwd)", "rm -rf `pwd`", "rm -rf /$X", 'rm -rf -- "$@"'),
    *("rm -rf --no-preserve-root /x", "if true; then rm -rf /; fi", "for i in a; do rm -rf $i; done", "(rm -rf /)"),
    *(
        "f() { rm -rf /; }; f",
        "{ rm -rf /; }",
        "true && rm -rf /",
        "eval rm -rf /",
        'eval "rm -rf" /',
        "nohup rm -rf / &",
    ),
    *("echo 'rm -rf /' | sh", "echo rm -rf / | bash", 'bash <<< "rm -rf /"', "bash <<E\nrm -rf /\nE", "xargs rm -rf /"),
    *("echo / | xargs rm -rf", "find / -delete", "find ~ -exec rm -rf {} +", "find . -delete", "find -exec rm {} +"),
    *("mkfs.ext4 /dev/sda1", "mkfs -t ext4 x", "dd if=/dev/zero of=/dev/sda", "dd of=/dev/nvme0n1 if=x", "wipefs -a x"),
    *("echo x > /dev/sda", "cat x >/dev/vda1", "tee /dev/sdb", "echo b > /proc/sysrq-trigger", "cp x /dev/mmcblk0"),
    *("chmod -R 777 /", "chmod -R 000 ~", "chown -R nobody /etc", "sudo chmod 777 / -R", ":(){ :|:& };:"),
    *("bomb() { bomb | bomb & }; bomb", "shutdown -h now", "sudo reboot", "systemctl poweroff", "init 0", "kill -9 -1"),
    *("$(which rm) -rf /", "$RM -rf /", "rm -rf {/,x}", "rm -rf /{bin,usr}", "$'rm' -rf /", "$'\\x72m' -rf $'/'"),
    *("timeout 5 rm -rf /", "busybox rm -rf /", "git -c alias.x='!rm -rf /' x", "rm \\\n -rf /", "ssh a 'rm -rf /'"),
    *("function f { rm -rf ~; }; f", "function f() { rm -rf ~; }; f", "f () { rm -rf ~; }; f", "f() (rm -rf ~); f"),
    *(
        "function f { { rm -rf ~; }; }; f",
        "coproc NAME { rm -rf ~; }",
        "function f\n{\nrm -rf ~\n}\nf",
        "time { rm -rf ~; }",
    ),
    *("function f { command rm -rf ~; }; f", "function f { X=1 rm -rf ~; }; f", "{ { rm -rf ~; }; }"),
    *(
        "cd / && rm -rf home",
        "cd /; rm -rf etc",
        "cd /\nrm -rf usr/",
        "cd -P / && rm -rf ./var",
        "cd -- / && rm -rf home",
    ),
    *(
        "cd / && cd . && rm -rf home",
        "cd /usr && cd .. && rm -rf home",
        "cd /usr/.. ; rm -rf home",
        "(cd / && rm -rf home)",
    ),
    *("pushd / && rm -rf home", "pushd /; pushd /tmp; popd; rm -rf home", "cd /; cd /tmp; cd - && rm -rf home"),
    *(
        "cd /; cd /tmp; cd $OLDPWD && rm -rf home",
        'cd /; cd /tmp; rm -rf "$OLDPWD/home"',
        "cd /; cd /tmp; rm -rf ~-/home",
    ),
    *(
        "builtin cd / && rm -rf home",
        "command cd / && rm -rf home",
        "cd / && sudo rm -rf home",
        "cd / && sh -c 'rm -rf home'",
    ),
    *("sh -c 'cd / && rm -rf home'", "cd /home && rm -rf alice", "cd / && rm -rf h*", "cd /$X && rm -rf home"),
    *("cd ~/.. && rm -rf alice", "cd {/,x} && rm -rf home", "cd / && find . -name x -delete", "cd / && chmod -R 777 ."),
    *("cd /dev && dd if=/dev/zero of=sda", "cd /dev && cp x sda", "cd /dev && cat x > sda", "cd /dev && tee sda"),
    *("env -C / rm -rf home", "env --chdir=/ rm -rf home", "env --chdir / rm -rf home", "sudo -D / rm -rf home"),
    *(
        "chroot / rm -rf home",
        "chroot /mnt/.. rm -rf home",
        "if cd /; then rm -rf home; fi",
        "cd / || exit; rm -rf home",
    ),
    *(
        "rm -rf /proc/self/cwd/../..",
        "rm -rf /proc/self/cwd",
        "rm -rf /proc/$$/cwd",
        "rm -rf /proc/$PPID/cwd/..",
        "rm -rf /proc/1/cwd/*",
    ),
    *(f"rm -rf /proc/{process}/{link}" for process in ("self", "$$", "1") for link in ("root", "root/home", "root/*")),
    *(
        "rm -rf //proc/./self//cwd/..",
        "rm -rf /proc/self/task/1/cwd",
        "rm -rf /proc/self/../self/root/home",
        "rm -rf /proc/*/cwd",
    ),
    *("cd /proc/self/root && rm -rf home", "cd /proc/self/cwd && rm -rf ../..", "rm -rf ../../../../../../etc"),
    *("chmod -R 0 /proc/self/root/etc", "find /proc/self/root -name x -delete"),
    *("env -S 'rm -rf /'", "env --split-string 'rm -rf ~'", "git bisect run rm -rf ~", "uv run rm -rf /", "srm -rf ~"),
    *(
        "cryptsetup luksFormat /dev/sda1",
        "lvremove -f vg/root",
        "vgremove vg",
        "zpool destroy tank",
        "zfs destroy -r a/b",
    ),
    *("nvme format /dev/nvme0n1", "hdparm --security-erase x /dev/sda", "parted -s /dev/sda mklabel gpt"),
    *(
        "fdisk /dev/sda < x",
        "diskutil eraseDisk JHFS+ x disk0",
        "mdadm --zero-superblock /dev/sda",
        "badblocks -w /dev/sda",
    ),
    *("rsync -a --delete empty/ /", "rsync -a --delete-after empty/ ~/", "mv ~ /tmp/x", "mv /* /tmp/x", "mv -t x /etc"),
    *("shred -u ~/*", "killall5 -9", "crontab -r", "rm -rf /usr/lib", "rm -rf /usr/local/*", "rm -rf /var/lib/"),
    *("2>/dev/null rm -rf /", "</dev/null rm -rf /", "ls # it's\nrm -rf / # '", "{rm,-rf,/}", "xargs rm -rf <<< /"),
    *("time -p rm -rf /", "time -p -- rm -rf /", 'echo "$(ls # it\'s\n)"; rm -rf /', 'echo "$(ls;# a)\n)"; rm -rf /'),
    *("rsync -a --delete empty/ / < x", "mv ~ /tmp/x 2>/dev/null", 'ls # a"b\nrm -rf ~'),
    *("FOO=1 rm -rf /", "! rm -rf /", "time rm -rf /", "while :; do rm -rf /; done", "case x in a) rm -rf /;; esac"),
]


@pytest.mark.requirement("H9")
@pytest.mark.parametrize("command", UNRECOVERABLE)
def test_what_cannot_be_undone_is_refused_in_every_spelling(command: str) -> None:
    assert is_unrecoverable(command)


@pytest.mark.parametrize(
    "command",
    [
        *(
            "rm -rf build",
            "rm -rf ./build dist/ *.egg-info",
            "rm -rf /tmp/foo",
            "rm -rf /srv/app/node_modules",
            "rm x",
        ),
        *('rm -rf "$X/build"', "rm -rf ~/project/build", "rm -rf $HOME/.cache/pip", "rm *", "echo rm -rf /", "mv a b"),
        *('git commit -m "rm -rf / is bad"', "grep -rn 'rm -rf /' .", "chmod -R 755 .", "chmod -R u+w build"),
        *("find . -name '*.pyc' -delete", "find . -name '*.pyc' | xargs rm -f", "kill -9 1234", "kill -1 123"),
        *(
            "find . -type d -name __pycache__ -exec rm -rf {} +",
            "dd if=/dev/zero of=out bs=1M count=1",
            "x > /dev/null",
        ),
        *("make shutdown", "python -c 'print(1)'", "systemctl status foo", "bash -c 'ls /'", "cp -r / x", "ls -R /"),
        *(
            "for f in *.py; do echo $f; done",
            "cd build && rm -rf lib bin",
            "cd /srv/app && rm -rf lib",
            "cd ~/project && rm -rf var",
            'cd "$DIR" && rm -rf lib',
            "cd / && ls && cd /srv/app && rm -rf etc",
            "cd /tmp && rm -rf home/x",
            "cd / && rm -rf tmp/x",
            "env -C /srv/app rm -rf lib",
            "rm -rf /proc/self/cwd/build",
            "rm -rf ../lib ../../lib",
            "function build { make; }; build; rm -rf lib",
            "cd -; rm -rf lib",
            "popd && rm -rf bin",
            "$PIP install -r /srv/app/r.txt",
            "rm -rf target && cargo build",
            "git push -f",
            "fdisk -l",
            "zfs list",
            "crontab -l",
            "cryptsetup luksDump /dev/sda1",
            "rm -rf /var/lib/apt/lists/*",
            "rm -rf /usr/local/lib/node_modules/x",
            'rsync -a --delete build/ "$DEST/"',
            "rsync -a --delete build/ host:/srv/www/",
            'for f in *.a; do mv "$f" "$f.b"; done',
            'mv "$TMP"/* out/',
            "mv * ..",
            "shred -u key.pem",
            "npm run reboot",
        ),
    ],
)
def test_what_can_be_undone_is_left_to_others(command: str) -> None:
    assert is_unrecoverable(command) is None


@pytest.mark.requirement("H9")
def test_a_parsed_command_is_judged_as_its_text() -> None:
    result = parse("sudo rm -rf /")
    assert isinstance(result, Parsed)
    assert is_unrecoverable(result)
