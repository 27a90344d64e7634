from api.errors import ApiError

FILES = {}
MOST_BYTES = 1_000_000


def upload(name, data):
    """Keep a file. Raise ApiError if it cannot be."""
    if not name:
        raise ApiError("E001", 400, "the name is empty")
    if "/" in name:
        raise ApiError("E004", 400, "the name has a slash")
    if len(data) > MOST_BYTES:
        raise ApiError("E005", 413, "the file has more than 1,000,000 bytes")
    FILES[name] = data
