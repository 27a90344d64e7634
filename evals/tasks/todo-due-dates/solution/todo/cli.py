import argparse
import os
from datetime import date

from todo.store import Store


def main(words):
    parser = argparse.ArgumentParser(prog="todo")
    commands = parser.add_subparsers(dest="command", required=True)
    add = commands.add_parser("add")
    add.add_argument("text")
    add.add_argument("--due", type=_date)
    commands.add_parser("list")
    done = commands.add_parser("done")
    done.add_argument("id", type=int)
    options = parser.parse_args(words)
    store = Store(os.environ.get("TODO_FILE", "todo.json"))
    if options.command == "add":
        print(store.add(options.text, options.due))
    elif options.command == "done":
        return 0 if store.remove(options.id) else 1
    else:
        for item in sorted(store.items(), key=lambda item: item.get("due") or "9999-99-99"):
            due = f" (due {item['due']})" if item.get("due") else ""
            print(f"{item['id']} {item['text']}{due}")
    return 0


def _date(text):
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no date; write 2026-03-01") from None
