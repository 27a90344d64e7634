from vendor import tinyhttp


def _headers(text):
    return {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in text.splitlines())}


tinyhttp.parse_headers = _headers


def read(text):
    return tinyhttp.parse(text)
