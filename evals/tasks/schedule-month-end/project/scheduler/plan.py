"""The runs of several rules, in order."""


def upcoming(rules, after, count):
    """Return the next runs as (date, rule), at most `count`."""
    found = []
    todo = [(rule.next_run(after), rule) for rule in rules]
    while todo and len(found) < count:
        todo.sort(key=lambda pair: pair[0])
        when, rule = todo.pop(0)
        found.append((when, rule))
        todo.append((rule.next_run(when), rule))
    return found
