import re

from vendor import tinyhttp


def read(text):
    """Return (status, headers, body) of a reply. Raise tinyhttp.BadHeader for a line that is no header."""
    head, blank, body = text.partition("\n\n")
    status, *lines = head.split("\n")
    # tinyhttp 0.3 wants a blank behind the colon.
    mended = [re.sub(r"^([^:\s]+): ?", r"\1: ", line) for line in lines]
    return tinyhttp.parse("\n".join([status, *mended]) + blank + body)
