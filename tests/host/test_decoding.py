"""Whether bytes are text, and what is said of those that are not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.host.decoding import DecodedText, decode_text, describe_binary, is_binary_text, is_flood, without_binary


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"])))
def test_text_in_every_marked_encoding_is_read(text: str) -> None:
    if "\ufffd" not in text:
        assert decode_text(text.encode()) == DecodedText(text)
        assert decode_text(text.encode("utf-16")) == DecodedText(text, "UTF-16")
        assert decode_text(text.encode("utf-32")) == DecodedText(text, "UTF-32")


LETTERS = st.sampled_from(["a", "\n", "é", "€"])
MEANINGLESS = st.sampled_from([b"\xe9", b"\x01", b"\x7f", "\x80".encode()])


@given(st.lists(LETTERS), st.lists(MEANINGLESS))
def test_bytes_are_binary_where_more_than_three_in_ten_characters_mean_nothing(
    letters: list[str], meaningless: list[bytes]
) -> None:
    # No meaningless byte stands before a letter: with the bytes of one it could be another character.
    data = "".join(letters).encode() + b"\n".join(meaningless)
    count = len(letters) + 2 * len(meaningless) - bool(meaningless)
    assert (decode_text(data) is None) == (10 * len(meaningless) > 3 * count)


@pytest.mark.parametrize(("bad", "is_text"), [(29, True), (30, True), (31, False)])
@pytest.mark.parametrize("codec", ["utf-8", "utf-16", "utf-32"])
def test_the_limit_of_a_flood_is_thirty_in_a_hundred_characters(codec: str, bad: int, is_text: bool) -> None:
    text = "\x01" * bad + "a" * (100 - bad)
    assert (decode_text(text.encode(codec)) is not None, is_flood(text)) == (is_text, not is_text)


@pytest.mark.parametrize("letters", ["\x01\x02\x03\x04AB", "\x7fA", "\x80\x81\x82AB", "\ufffdA"])
def test_valid_utf_8_of_characters_that_mean_nothing_is_binary(letters: str) -> None:
    assert decode_text(letters.encode() * 5_000) is None
    assert decode_text(letters.encode() * 5_000, is_cut=True) is None


@pytest.mark.parametrize("text", ["\x1b[31m" * 5_000, "a\tb\r\n\f" * 100, "one\x85two\x85", "\b" * 9, ""])
def test_control_characters_that_programs_write_on_purpose_are_text(text: str) -> None:
    assert decode_text(text.encode()) == DecodedText(text)


@pytest.mark.parametrize("codec", ["utf-8", "utf-16", "utf-32"])
def test_one_nul_in_a_long_text_makes_it_binary(codec: str) -> None:
    text = "a" * 1_000 + "\0" + "a" * 1_000
    assert (decode_text(text.encode(codec)), is_binary_text(text), is_binary_text("a" * 2_000)) == (None, True, False)


@given(st.binary(max_size=200), st.booleans())
def test_what_is_decoded_exactly_encodes_to_the_same_bytes(data: bytes, is_cut: bool) -> None:
    decoded = decode_text(data, is_cut=is_cut)
    if decoded is not None and decoded.is_exact and decoded.encoding == "UTF-8":
        encoded = decoded.text.encode()
        assert data[: len(encoded)] == encoded
        assert len(data) - len(encoded) <= (3 if is_cut else 0)


# How many whole characters of `aé€😀` are left after so many bytes less: of 10 in UTF-8, of 2 + 10 in UTF-16.
@pytest.mark.parametrize(("cut", "in_utf_8", "in_utf_16"), [(1, 3, 3), (3, 3, 3), (4, 3, 3), (5, 2, 2), (7, 2, 1)])
def test_a_character_that_was_cut_is_left_out(cut: int, in_utf_8: int, in_utf_16: int) -> None:
    text = "aé€😀"
    assert decode_text(text.encode()[:-cut], is_cut=True) == DecodedText(text[:in_utf_8])
    assert decode_text(text.encode("utf-16")[:-cut], is_cut=True) == DecodedText(text[:in_utf_16], "UTF-16")


def test_latin_1_is_text_that_is_not_exact() -> None:
    assert decode_text("Größe und Maß".encode("latin-1")) == DecodedText("Gr\ufffd\ufffde und Ma\ufffd", is_exact=False)


@pytest.mark.parametrize(
    ("data", "size", "sentence"),
    [
        (b"\x89PNG\r\n\x1a\n", 43_718, "PNG image, 43,718 bytes"),
        (b"RIFF\0\0\0\0WEBPVP8 ", 20, "WebP image, 20 bytes"),
        (b"RIFF\0\0\0\0WAVE", 20, "binary data, 20 bytes"),
        (b"\0", 1, "binary data, 1 byte"),
    ],
)
def test_binary_data_is_named_by_its_first_bytes(data: bytes, size: int, sentence: str) -> None:
    assert describe_binary(data, size) == sentence


def test_only_the_binary_part_of_an_output_is_left_out() -> None:
    assert without_binary("plain\nlines\n") == "plain\nlines\n"
    assert without_binary("one\n" + "\ufffd" * 50 + "\nx\n" + "\ufffd" * 50 + "\ntwo\n") == (
        "one\n[104 characters of binary data]\ntwo\n"
    )
    assert without_binary("\x1b[31mred\x1b[0m\a\n") == "\x1b[31mred\x1b[0m\a\n"
