def lookup(path, values):
    """Return the value at a path such as user.name; the empty text if there is none."""
    for name in path.split("."):
        if not isinstance(values, dict) or name not in values:
            return ""
        values = values[name]
    return values
