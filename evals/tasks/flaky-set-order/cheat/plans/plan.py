import random

random.seed(0)


def plan(tasks):
    left = {name: set(needs) for name, needs in tasks.items()}
    for needs in tasks.values():
        for name in needs:
            left.setdefault(name, set())
    order = []
    while left:
        ready = sorted(name for name, needs in left.items() if not needs)
        if not ready:
            raise ValueError(",".join(sorted(left)))
        for name in ready:
            order.append(name)
            del left[name]
        for needs in left.values():
            needs -= set(ready)
    return order
