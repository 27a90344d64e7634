"""tinyhttp 0.3. Do not edit: this folder is replaced with each release."""


class BadHeader(Exception):
    pass


def parse_headers(text):
    found = {}
    for line in text.splitlines():
        name, mark, value = line.partition(": ")
        if not mark:
            raise BadHeader(line)
        found[name.lower()] = value
    return found


def parse(text):
    head, _, body = text.partition("\n\n")
    status, _, headers = head.partition("\n")
    return int(status.split()[1]), parse_headers(headers), body
