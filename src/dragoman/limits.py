"""The limits of the protocol layer, and those on which several modules must agree: each once, with its reason.

What belongs here: sizes, counts and seconds of `wire`, `dialects`, `link`, `transports` and child processes; and any
other limit that two modules share, so that it cannot be changed in one of them alone. A limit that a single module
above that layer knows stands in that module, beside the code that it bounds.
"""

from typing import Any, Final

KIB: Final = 1024
MIB: Final = 1024 * KIB
GIB: Final = 1024 * MIB

# One message. The largest real ones are diffs and images; codex takes 64 MiB on stdio as well.
FRAME_BYTES: Final = 64 * MIB
# A larger message that says how long it is (Content-Length) is read over up to this many bytes, and the connection goes
# on. More is not waited for: at 1 GiB a second, 10 TiB take three hours.
SKIP_BYTES: Final = 1 * GIB
# Brackets inside brackets. Real messages stay under 20; parsers recurse.
NESTING_DEPTH: Final = 128
# One list of things that mean something: blocks of a prompt, steps of a plan. Each costs some microseconds to take in.
LIST_ITEMS: Final = 10_000
# The id of a request, in characters. Real ones are a number or a UUID; an id is kept while its request is in flight,
# and stands in the answer.
ID_CHARACTERS: Final = 1024
# What is repeated of a text that the peer sent and that names nothing: enough to recognise it.
ECHO_CHARACTERS: Final = 1024
# The same inside a sentence for people.
WORDS_ECHO_CHARACTERS: Final = 60
# A Content-Length header block is two short lines; more is an attack or another protocol.
HEADER_BYTES: Final = 8 * KIB

# One read from a pipe. Larger reads make the allocator map fresh pages each time (11 µs instead of 0.8).
READ_BYTES: Final = 64 * KIB
# Output is gathered up to this and written in one call; it is also what a Linux pipe holds.
WRITE_BYTES: Final = 64 * KIB
# What waits for a peer that does not read. Then the producer waits.
OUTBOX_BYTES: Final = 4 * MIB
# Answers that may queue above a full outbox for a peer past its in-flight limit; then we stop reading it.
REFUSAL_BYTES: Final = 1 * MIB
# Requests of one peer being worked on, and requests of ours waiting for it. Codex uses 128 as well.
IN_FLIGHT: Final = 128

# Updates for a session whose id we do not know yet (it is in a response not read yet).
EARLY_UPDATE_BYTES: Final = 1 * MIB

# What is kept of a child's stderr: enough for a traceback, not for a flood.
STDERR_RING_BYTES: Final = 64 * KIB
# After stdin is closed a child may finish by itself, then it is told (SIGTERM), then it is killed.
CHILD_EXIT_SECONDS: Final = 0.5
CHILD_TERM_SECONDS: Final = 1.0
# SIGKILL needs no consent; this only bounds the wait for the kernel to reap.
CHILD_KILL_SECONDS: Final = 2.0
# Written before a close; a peer that does not read cannot hold the close longer than this.
CLOSE_FLUSH_SECONDS: Final = 1.0

# Bytes heard that the layer above has not taken yet; then we stop reading until it has, or waits for an answer.
INBOX_BYTES: Final = 16 * MIB
# A process is gone so long after the end of its input or a signal, whatever its handlers do (`link/deadline`).
END_SECONDS: Final = 2.0
# After EOF, requests that came before it may still be answered: the first half of that.
EOF_ANSWER_SECONDS: Final = END_SECONDS / 2

# A handler that was cancelled may clean up for this long; then its turn ends without it and its words go nowhere.
CANCEL_GRACE_SECONDS: Final = 2.0
# A longer path is no path of a file system we know (PATH_MAX is 4096 on Linux).
PATH_BYTES: Final = 4096
# The same as a count; an update of ordinary size takes about a kibibyte in memory.
EARLY_UPDATES: Final = EARLY_UPDATE_BYTES // KIB
# An agent that is a wrapper around npx may have to fetch itself first.
START_SECONDS: Final = 60.0
# An agent that has failed is started again after this, then after twice as long each time, up to the second: a program
# that fails at its start must not be started in a tight loop.
RESTART_SECONDS: Final = 0.5
LONGEST_RESTART_SECONDS: Final = 30.0
# Lines of a child's stderr in an error message: the end of a traceback.
STDERR_MESSAGE_LINES: Final = 10

# A gateway keeps a connection without a reader so long, and so long a client tries to come back to it: a laptop that
# was closed for a coffee finds its session running.
RECONNECT_SECONDS: Final = 600.0

# A configuration file of more (`config.toml`, `acp.json`, `.mcp.json`) is none.
CONFIG_BYTES: Final = 1 * MIB
# A folder has no more folders above it: each takes two bytes of its path.
PARENT_FOLDERS: Final = PATH_BYTES // 2
# What logs and lists show of a session's id: `sess_` and eight digits, a prefix that is unique among some ten thousand
# sessions, and that `dragoman sessions show` accepts. A whole id stays out of logs: with it a client opens the session.
SHORT_ID: Final = slice(13)  # `session_id[SHORT_ID]`


def evict_oldest(entries: dict[Any, Any], most: int) -> None:
    """Remove what was put first, until at most `most` entries are left."""
    while len(entries) > most:
        del entries[next(iter(entries))]
