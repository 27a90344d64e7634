"""Judge clients: we are the scripted agent that a client talks to, and read what it sends.

A scenario (`scenarios`) is what our agent does in one run of the client; `script` is that agent. `subject` starts the
client with the command of our agent (`relay`), or waits for one that connects, and `trial` plays one scenario with it.
The rows of a scenario are judged on what the run has left (`judges`). `peer` is the client that proves the judges.
"""
