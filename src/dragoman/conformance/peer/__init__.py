"""An agent that keeps to the protocol, over memory, and breaks one row when a switch is set: what proves the probes.

`subject.PeerSubject` opens it as a command would be started, `wire_end` has its bytes, `agent` its requests, `turn`
what it does with a prompt. What it says depends on the prompt: one with the word `slow` lasts until it is cancelled,
one with the word `ask` asks for permission, any other is a short turn. It shares no code with what is judged of ours.
"""
