"""What the offline model says about itself."""

from typing import Final

INTRODUCTION: Final = """\
I am Dragoman's offline model: fixed rules, no network. `dragoman login` connects a real one; `help` tells more.

"""
WHAT_I_CAN: Final = """\
What I understand, in plain words:

- read: `read src/app.py`, `show README.md lines 1-20`, `list files in src`
- find: `find files named *.py`, `search for TODO in src`, `where is parse defined`
- run: `run make`, `run the tests`, `fetch https://example.com`
- write: `create a.txt with "hello"`, `append "x" to a.txt`, `replace "a" with "b" in a.txt`, `rename f to g`
- think: `explain src/app.py`, `plan to add logging`, `why does test_add fail`, `fix the failing test test_add`

Several requests: join them with `then`, or write a list.
"""
HOW_TO_CONNECT: Final = """\
For a real model: `dragoman login`, or set `OPENAI_API_KEY`, `ANTHROPIC_API_KEY` or `GEMINI_API_KEY`; \
`--model provider/name` chooses it. With Ollama running on this machine: `--model ollama/name`.
"""
WHO_I_AM: Final = (
    "I am Dragoman's offline model. I follow fixed rules and reach no network; I drive the real tools.\n\n"
)
HELP: Final = f"{WHO_I_AM}{WHAT_I_CAN}\n{HOW_TO_CONNECT}"
PUZZLED: Final = f"I do not understand that; I only know fixed rules.\n\n{WHAT_I_CAN}\n{HOW_TO_CONNECT}"
