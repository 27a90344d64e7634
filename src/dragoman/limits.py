"""Every size, count and second the product is bounded by, with the reason beside it."""

from typing import Final

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
EARLY_UPDATE_SECONDS: Final = 10.0

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

# A confined command and all it starts: at least this, and half of the machine's memory where that is more. A build of a
# large project takes a few gibibytes; the other half keeps the machine alive.
SANDBOX_MEMORY_BYTES: Final = 2 * GIB
# Processes and threads of one: at least this, and so many for each core. A parallel build has some tens of threads for
# each core; a fork bomb of this size does not slow the machine down.
SANDBOX_PROCESSES: Final = 1024
SANDBOX_CORE_PROCESSES: Final = 64
