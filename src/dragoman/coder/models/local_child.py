"""The process a local model lives in: requests on stdin, what the model says on stdout, a JSON object a line.

`python -m dragoman.coder.models.local_child FILE THREADS WINDOW`. It says `{"ready": true}` when the weights are read.
A request is answered by chunks and `{"end": true}`; `{"stop": true}` ends it early. End of stdin ends the process, in
the middle of a word if need be: so it never outlives its parent process.
"""

import importlib
import json
import os
import queue
import secrets
import sys
import threading
from typing import Any


def main(path: str, threads: int, window: int) -> None:
    """Serve until stdin ends."""
    # Our own stdout: whatever the library prints goes to stderr.
    out = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    requests: queue.Queue[dict[str, Any]] = queue.Queue()
    stop = threading.Event()
    threading.Thread(target=_listen, args=(requests, stop), daemon=True).start()
    server = _server(path, threads, window)

    def say(value: object) -> None:
        out.write(json.dumps(value).encode() + b"\n")

    def hear(chunk: object) -> bool:
        say(chunk)
        return stop.is_set()

    say({"ready": True})
    while True:
        request = requests.get()
        stop.clear()
        loose = request.pop("loose", None)
        if loose is not None and not _has_grammar(request["response_format"]["json_schema"]["schema"]):
            request["response_format"]["json_schema"]["schema"] = loose
        try:
            server.handle_chat_completions(request, hear)
        except Exception as error:
            say({"error": {"code": 500, "message": type(error).__name__}})
        say({"end": True})


def _listen(requests: "queue.Queue[dict[str, Any]]", stop: threading.Event) -> None:
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if message.get("stop"):
            stop.set()
        else:
            requests.put(message)
    os._exit(0)


def _server(path: str, threads: int, window: int) -> Any:
    xllamacpp = _library()
    parameters = xllamacpp.CommonParams()
    parameters.model.path = path
    parameters.n_ctx = window
    parameters.n_parallel = 1
    parameters.cpuparams.n_threads = threads
    parameters.cpuparams_batch.n_threads = threads
    parameters.warmup = False
    # The library listens on loopback too; a random key keeps other programs out.
    parameters.api_keys = [secrets.token_hex(32)]
    return xllamacpp.Server(parameters)


def _has_grammar(schema: object) -> bool:
    try:
        _library().json_schema_to_grammar(json.dumps(schema))
    except Exception:
        return False
    return True


def _library() -> Any:
    """It has no types, and is not installed everywhere."""
    return importlib.import_module("xllamacpp")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
