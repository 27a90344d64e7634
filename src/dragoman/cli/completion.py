"""`dragoman completion SHELL`: a script that lets a shell complete our command line.

The scripts are short and never out of date: at every Tab they ask `dragoman completion --words WORD ...`, which
answers with a candidate a line, `WORD<Tab>what it is`, or with `:files` or `:folders` where paths belong.
"""

import argparse
from typing import Final

from dragoman.cli.common_options import Commands, add_command
from dragoman.cli.errors import print_error

_DESCRIPTION = """\
Print a script that makes Tab complete commands, options, modes, agents and
sessions. Put one line into your shell's start-up file:

  ~/.bashrc                    eval "$(dragoman completion bash)"
  ~/.zshrc, after compinit     eval "$(dragoman completion zsh)"
  ~/.config/fish/config.fish   dragoman completion fish | source
"""

_BASH: Final = r"""_dragoman() {
    local line path current=${COMP_WORDS[COMP_CWORD]}
    [[ $current == "=" ]] && current=
    COMPREPLY=()
    while IFS= read -r line; do
        case $line in
            :files | :folders)
                compopt -o filenames 2>/dev/null
                local kind=-f
                [[ $line == :folders ]] && kind=-d
                while IFS= read -r path; do COMPREPLY+=("$path"); done < <(compgen "$kind" -- "$current")
                ;;
            *) COMPREPLY+=("${line%%$'\t'*}") ;;
        esac
    done < <("${COMP_WORDS[0]}" completion --words "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _dragoman dragoman
"""

_ZSH: Final = r"""#compdef dragoman
_dragoman() {
    local line result=1
    local -a found
    for line in "${(@f)$(${words[1]} completion --words "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
        case $line in
            :files) _files && result=0 ;;
            :folders) _files -/ && result=0 ;;
            ?*) found+=("${${line%%$'\t'*}//:/\\:}${${(M)line%$'\t'*}/$'\t'/:}") ;;
        esac
    done
    (( $#found )) && _describe -t dragoman dragoman found && result=0
    return result
}
if [[ $funcstack[1] == _dragoman ]]; then
    _dragoman "$@"
else
    compdef _dragoman dragoman
fi
"""

_FISH: Final = r"""function __dragoman_candidates
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    for line in ($words[1] completion --words $words[2..-1] "$current" 2>/dev/null)
        switch $line
            case :files
                __fish_complete_path "$current"
            case :folders
                __fish_complete_directories "$current"
            case '*'
                echo $line
        end
    end
end
complete -c dragoman -f -a '(__dragoman_candidates)'
"""
SCRIPTS: Final = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}


def add(commands: Commands) -> argparse.ArgumentParser:
    """Declare the command."""
    parser = add_command(
        commands,
        "completion",
        "let Tab complete this command line in bash, zsh or fish",
        _DESCRIPTION,
        usage="dragoman completion {bash,zsh,fish}",
    )
    parser.add_argument("shell", choices=tuple(SCRIPTS), metavar="SHELL", nargs="?", help="bash, zsh or fish")
    parser.add_argument("--words", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Print the script, or what the script asks for."""
    if arguments.words is not None:
        _answer(arguments.words)
    elif arguments.shell is None:
        return print_error("for which shell? dragoman completion bash, zsh or fish")
    else:
        print(SCRIPTS[arguments.shell], end="")
    return 0


def _answer(words: list[str]) -> None:
    from dragoman.cli.completion_candidates import candidates
    from dragoman.cli.main import command_line
    from dragoman.cli.text_width import harmless_line

    for word, about in candidates(command_line(words[0] if len(words) > 1 else ""), words):
        print(harmless_line(word) + (f"\t{harmless_line(about)}" if about else ""))
