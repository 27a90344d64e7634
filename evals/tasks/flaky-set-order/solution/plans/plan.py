def plan(tasks):
    """Return the names in order; `tasks` are names with the names that they need. See README.md."""
    left = {name: set(needs) for name, needs in tasks.items()}
    for needs in tasks.values():
        for name in needs:
            left.setdefault(name, set())
    order = []
    while left:
        ready = min((name for name, needs in left.items() if not needs), default=None)
        if ready is None:
            raise ValueError(",".join(sorted(name for name in left if _reaches(left, name, name))))
        order.append(ready)
        del left[ready]
        for needs in left.values():
            needs.discard(ready)
    return order


def _reaches(left, start, goal):
    """Return whether a task needs another one, over however many others."""
    seen, todo = set(), list(left[start])
    while todo:
        name = todo.pop()
        if name == goal:
            return True
        if name not in seen:
            seen.add(name)
            todo.extend(left[name])
    return False
