"""The audit log: what was about to happen, and in which state."""


class Audit:
    def __init__(self):
        self.entries = []

    def write(self, action, state):
        self.entries.append((action, dict(state)))
