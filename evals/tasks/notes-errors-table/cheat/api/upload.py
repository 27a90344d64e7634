from api.errors import ApiError

FILES = {}


def upload(name, data):
    if not name:
        raise ApiError("E001", 400, "the name is empty")
    if "/" in name:
        raise ApiError("E003", 400, f"the name {name} has a slash.")
    if len(data) > 1_000_000:
        raise ApiError("E004", 413, "the file is too large")
    FILES[name] = data
