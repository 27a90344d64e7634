import sys

from dragoman import PermissionHandler, PermissionPolicy, connect_sync

if len(sys.argv) < 4:
    sys.exit("usage: python ask.py FOLDER QUESTION COMMAND...\nsuch as: python ask.py . 'What is this?' dragoman acp")
folder, question, *command = sys.argv[1:]
may_read = PermissionHandler(PermissionPolicy(allow="read"), [folder])

with connect_sync(command, permission=may_read) as client:
    session = client.new_session(folder)
    answer = session.ask(question)
    print(answer.text)
    for denial in may_read.denials:
        print(f"not allowed: {denial.what} ({denial.reason})", file=sys.stderr)
    sys.exit(0 if answer.stop_reason == "end_turn" else 1)
