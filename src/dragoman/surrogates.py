"""Replace halves of surrogate pairs in text, for every part that encodes text as UTF-8. Pure."""


def replace_lone_surrogates(text: str) -> str:
    """Return the text with U+FFFD for each half of a surrogate pair that stands alone; two halves become one character.

    A `str` of Python may hold such halves (a path of another encoding, a cut in the middle of a pair), UTF-8 cannot:
    encoding them raises. UTF-16 is where pairs have a meaning, so the text goes through it once.
    """
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
