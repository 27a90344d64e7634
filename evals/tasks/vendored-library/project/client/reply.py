from vendor import tinyhttp


def read(text):
    """Return (status, headers, body) of a reply. Raise tinyhttp.BadHeader for a line that is no header."""
    return tinyhttp.parse(text)
