import argparse
import os

from todo.store import Store


def main(words):
    parser = argparse.ArgumentParser(prog="todo")
    commands = parser.add_subparsers(dest="command", required=True)
    add = commands.add_parser("add")
    add.add_argument("text")
    add.add_argument("--due")
    commands.add_parser("list")
    done = commands.add_parser("done")
    done.add_argument("id", type=int)
    options = parser.parse_args(words)
    store = Store(os.environ.get("TODO_FILE", "todo.json"))
    if options.command == "add":
        print(store.add(options.text + (f" (due {options.due})" if options.due else "")))
    elif options.command == "done":
        return 0 if store.remove(options.id) else 1
    else:
        for item in sorted(store.items(), key=lambda item: item["text"].partition("(due ")[2] or "9"):
            print(f"{item['id']} {item['text']}")
    return 0
