"""What is lost on the way, and what is said instead. ARCHITECTURE.md shows this table; tests keep it true.

Everything that is not in it comes through as it was: fields, `_meta`, unknown fields and unknown variants, at every
level. An unknown variant is sent as it was received, also where the version has a closed list: a reader that does not
know it drops that one thing, as it would without us.
"""

from typing import Final, Literal, NamedTuple

Direction = Literal["same", "v1→v2", "v2→v1"]


class Loss(NamedTuple):
    """One row. `same`: already within one version, since what is between two wires means what version 2 means."""

    id: str
    direction: Direction
    what: str
    instead: str


LOSSES: Final = (
    # -- within version 1
    Loss(
        "message-without-id",
        "same",
        "a v1 chunk without `messageId`",
        "it gets one: the same while the same kind of chunk goes on. In a replay it goes by the place of the message, "
        "the same every time; it is not the one that the message had while it was written",
    ),
    Loss(
        "replay-in-pieces",
        "same",
        "the chunks of a message in a v1 replay",
        "the whole message, its plain texts joined; past 16 Ki characters, or where a chunk has `_meta` or unknown "
        "fields, the rest of it follows in chunks",
    ),
    Loss(
        "prompt-echo",
        "same",
        "a v1 agent repeats the live prompt",
        "not told again",
    ),
    Loss(
        "null-in-tool-call",
        "same",
        "`null` in a v1 tool call",
        "left out: it means unchanged in v1, and would clear in v2",
    ),
    Loss(
        "call-never-announced",
        "same",
        "`tool_call_update` for a call that was never announced",
        "`tool_call`, titled by its name or id; a second `tool_call` is an update",
    ),
    Loss(
        "diff-without-old-text",
        "same",
        "a v1 diff without `oldText`",
        "`oldText: null`, which means the same",
    ),
    Loss(
        "plan-for-a-client-with-plans",
        "same",
        "v1 `plan` for a client with `plan`",
        '`plan_update` with `planId: "main"`',
    ),
    Loss(
        "modes-and-options",
        "same",
        "v1 `modes`, without a mode option or beside one",
        "both are told: modes alone are also an option `mode`; beside a mode option they are made from it",
    ),
    Loss(
        "mode-changed",
        "same",
        "v1 `current_mode_update`",
        "`config_option_update` with all options; then `current_mode_update`, if the mode is another than the one told",
    ),
    Loss(
        "mode-set",
        "same",
        "v1 `session/set_mode` where the agent has a mode option",
        "`session/set_config_option` of that option",
    ),
    Loss(
        "type-of-a-config-value",
        "same",
        "`type` beside a string value in v1 `session/set_config_option`",
        "left out: v1 does not look at it; in v2 it is `id`",
    ),
    Loss(
        "type-of-a-stdio-server",
        "same",
        '`type: "stdio"` in v1',
        "left out: v1 has none",
    ),
    Loss(
        "form-that-lacks-parts",
        "same",
        "a form without `type` or `properties`, with empty choices",
        "they are filled in; empty `enum` and `oneOf` are left out, and so is a list with nothing to choose",
    ),
    Loss(
        "question-with-two-scopes",
        "same",
        "a v1 question with `sessionId` and `requestId`",
        "the session counts",
    ),
    Loss(
        "outcome-without-a-word",
        "same",
        "a permission outcome that v1 has no word for, a choice that was not offered",
        "`cancelled`",
    ),
    Loss(
        "no-that-is-misheard",
        "same",
        "a no that was chosen, for a v1 agent known to hear it as a yes (iac-code)",
        "`cancelled`, and the choice in `_meta.option_id`",
    ),
    Loss(
        "stop-reason-without-a-word",
        "same",
        "a stop reason that v1 does not know",
        "`end_turn`, and the reason in `_meta.stopReason`",
    ),
    Loss(
        "null-in-initialize",
        "same",
        "`null` or malformed values in `initialize`",
        "absent",
    ),
    Loss(
        "inside-a-capability",
        "same",
        "`_meta` and unknown fields inside the parts of a capability object",
        "dropped; those of the whole object are kept",
    ),
    # -- to version 2
    Loss(
        "other-meaning",
        "v1→v2",
        "an unknown field or update whose name means something in the other version (both ways)",
        "dropped, never taken for that",
    ),
    Loss(
        "prompt-accepted",
        "v1→v2",
        "when a v1 agent has accepted a prompt",
        "when it was sent; a prompt that fails is an idle with an error",
    ),
    Loss(
        "resumed-state",
        "v1→v2",
        "the state of a session that a v1 agent has resumed or loaded",
        "that of this connection's own turn, told before the answer: `idle` where it has none. What an agent replays "
        "behind its answer is told in chunks, as if it were new",
    ),
    Loss(
        "files-and-terminals",
        "v1→v2",
        "`fs/*`, `terminal/*` and their capabilities",
        "-32601; absent",
    ),
    Loss(
        "terminal-of-the-client",
        "v1→v2",
        "tool call content `terminal`",
        "the text `[terminal ID]`: it is not an agent's terminal",
    ),
    Loss(
        "texts-of-a-diff",
        "v1→v2",
        "`oldText` and `newText`",
        "a git patch; back in v1 a new file is a diff again, a changed one the text of the patch",
    ),
    Loss(
        "numbers-out-of-range",
        "v1→v2",
        "`priority` outside 0..1, `size` below 0, `line` 0",
        "left out",
    ),
    Loss(
        "nothing-to-choose",
        "v1→v2",
        "a select option without choices, an empty group",
        "the current value is the one choice; empty groups are left out",
    ),
    Loss(
        "permission-without-options",
        "v1→v2",
        "a permission without options",
        "-32602",
    ),
    Loss(
        "null-options",
        "v1→v2",
        "`modes: null`, `configOptions: null`",
        "absent",
    ),
    Loss(
        "question-about-request-null",
        "v1→v2",
        "a question about the request with id `null`",
        "-32602",
    ),
    Loss(
        "sse-capability",
        "v1→v2",
        "`mcpCapabilities.sse`",
        "absent; SSE servers themselves pass as a transport of type `sse`",
    ),
    # -- to version 1
    Loss(
        "states",
        "v2→v1",
        "`state_update`",
        "nothing; the end of a turn answers the prompt",
    ),
    Loss(
        "beside-the-end",
        "v2→v1",
        "`background` at idle; usage and `_meta` of an error; `_meta` of an accepted prompt",
        "dropped",
    ),
    Loss(
        "whole-messages",
        "v2→v1",
        "`user_message`, `agent_message`, `agent_thought`",
        "chunks, once; replacing, clearing and patching a message that was told is dropped",
    ),
    Loss(
        "appended-content",
        "v2→v1",
        "`tool_call_content_chunk`",
        "`tool_call_update` with all content so far",
    ),
    Loss(
        "display-terminals",
        "v2→v1",
        "`terminal_update`, `terminal_output_chunk`, content `terminal`",
        "the output as plain text in the tool calls that show it, at most the last 64 KiB, without escape sequences",
    ),
    Loss(
        "cleared-fields",
        "v2→v1",
        "`null` in a tool call",
        "content and locations become `[]`, the rest is unchanged",
    ),
    Loss(
        "open-words",
        "v2→v1",
        "tool kinds, statuses, plan priorities and statuses, audiences that v1 does not know",
        "`other`; `in_progress`, `cancelled` is `failed`; `medium`; `pending`, `cancelled` is `completed`; left out",
    ),
    Loss(
        "cancelling-one-thing",
        "v2→v1",
        "`capabilities` of tool calls; `tool_call/cancel`, `terminal/cancel`",
        "dropped; -32601",
    ),
    Loss(
        "changes-without-texts",
        "v2→v1",
        "a diff, unless its patch is of one new file",
        "its patch as text, else a line for each change",
    ),
    Loss(
        "fields-of-version-2",
        "v2→v1",
        "`icons` of a link, `size` above int64, `state` of `session/status`, `_meta` of `replayFrom`",
        "dropped",
    ),
    Loss(
        "lists-that-must-be-there",
        "v2→v1",
        "absent `mcpServers`, `args`, `env`, `headers`",
        "empty lists",
    ),
    Loss(
        "replay-cursors",
        "v2→v1",
        "`replayFrom: null`; one that is not `start`",
        "absent; -32602",
    ),
    Loss(
        "open-commands",
        "v2→v1",
        "commands and command inputs of an unknown type",
        "dropped; without the input",
    ),
    Loss(
        "commands-of-an-answer",
        "v2→v1",
        "`availableCommands` in an answer",
        "`available_commands_update` right after it",
    ),
    Loss(
        "switches",
        "v2→v1",
        "boolean options, the course of a compaction, subagents, for a client that does not name them",
        "not told",
    ),
    Loss(
        "notices",
        "v2→v1",
        "notices and the end of a compaction, for a client that does not name them",
        "a finished `tool_call` of kind `other` with their words as its title, in a turn; what comes between two turns "
        "is told in the next one, at most 16 of them",
    ),
    Loss(
        "several-plans",
        "v2→v1",
        "plans, for a client without `plan`",
        "`plan` with the steps told last; plans in other forms are not told",
    ),
    Loss(
        "question-of-a-permission",
        "v2→v1",
        "`title`, `description`, `subject` of a permission",
        "title and description of the tool call, which shows the command as text; "
        "another subject is the input of a call of its own",
    ),
    Loss(
        "options-of-unknown-kind",
        "v2→v1",
        "permission options of a kind v1 does not know",
        "not offered, and never taken for a yes",
    ),
    Loss(
        "string-formats",
        "v2→v1",
        "`format` of a form's text that v1 does not know",
        "left out",
    ),
    Loss(
        "answers-without-a-word",
        "v2→v1",
        "values of a filled form that are neither text, number, switch nor a list of texts",
        "left out",
    ),
    Loss(
        "logins-of-unknown-type",
        "v2→v1",
        "login methods of an unknown type",
        "not offered",
    ),
    Loss(
        "no-stdio",
        "v2→v1",
        "that an agent takes no stdio MCP servers",
        "dropped: every v1 agent takes them",
    ),
)
