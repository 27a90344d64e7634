def plan(tasks):
    """Return the names in order; `tasks` are names with the names that they need. See README.md."""
    left = {name: set(needs) for name, needs in tasks.items()}
    for needs in tasks.values():
        for name in needs:
            left.setdefault(name, set())
    order = []
    while left:
        ready = {name for name, needs in left.items() if not needs}
        if not ready:
            raise ValueError(",".join(set(left)))
        for name in ready:
            order.append(name)
            del left[name]
        for needs in left.values():
            needs -= ready
    return order
