from api.errors import ApiError

FILES = {}


def upload(name, data):
    """Keep a file. Raise ApiError if it cannot be."""
    if not name:
        raise ApiError("E001", 400, "the name is empty")
    FILES[name] = data
