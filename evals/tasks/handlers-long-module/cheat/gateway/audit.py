class Audit:
    def __init__(self):
        self.entries = []

    def write(self, action, state):
        self.entries = [(action, {"count": 1})]
