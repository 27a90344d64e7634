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


LETTERS = st.sampled_from([b"a", b"\n", b"\xe9", b"\x01", "é".encode(), "€".encode()])


@given(st.lists(LETTERS).map(b"".join))
def test_bytes_without_a_mark_are_text_exactly_where_they_are_no_flood(data: bytes) -> None:
    assert (decode_text(data) is None) == is_flood(data.decode("utf-8", "replace"))


@pytest.mark.parametrize("letters", ["\x01\x02\x03\x04AB", "\x7fA", "\x80\x81\x82AB", "\ufffdA"])
def test_valid_utf_8_of_characters_that_mean_nothing_is_binary(letters: str) -> None:
    assert decode_text(letters.encode() * 5_000) is None
    assert decode_text(letters.encode() * 5_000, is_cut=True) is None


@pytest.mark.parametrize("text", ["\x1b[31m" * 5_000, "a\tb\r\n\f" * 100, "one\x85two\x85", "\b" * 9, ""])
def test_control_characters_that_programs_write_on_purpose_are_text(text: str) -> None:
    assert decode_text(text.encode()) == DecodedText(text)


@given(st.sampled_from(["utf-16", "utf-32"]), st.text(st.characters(exclude_categories=["Cs"])))
def test_text_with_a_mark_is_binary_where_it_holds_a_nul_or_is_a_flood(codec: str, text: str) -> None:
    assert (decode_text(text.encode(codec)) is None) == is_binary_text(text)


@given(st.binary(max_size=200), st.booleans())
def test_no_bytes_make_the_decoding_fail(data: bytes, is_cut: bool) -> None:
    assert isinstance(decode_text(data, is_cut=is_cut), DecodedText | None)


@pytest.mark.parametrize("cut", range(1, 8))
def test_a_character_that_was_cut_is_left_out(cut: int) -> None:
    data = "aé€😀".encode("utf-16")
    assert decode_text(data[:-cut], is_cut=True) is not None
    assert decode_text("aé€😀".encode()[:-cut], is_cut=True) is not None


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
