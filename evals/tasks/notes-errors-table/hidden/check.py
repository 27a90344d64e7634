import pathlib
import re

from api.errors import ApiError
from api.upload import FILES, upload


def refused(name, data):
    try:
        upload(name, data)
    except ApiError as error:
        return error
    raise AssertionError(f"{name} was accepted")


upload("a", b"x" * 1_000_000)
assert list(FILES) == ["a"]
slash, large, empty = refused("secret/name", b""), refused("big", b"x" * 1_000_001), refused("", b"")
assert list(FILES) == ["a"]
assert {slash.code, large.code} == {"E004", "E005"} and empty.code == "E001"
assert slash.status == 400 and large.status in (400, 413)
rows = re.findall(r"^\| (E\d{3}) \| (\w+) \| (.*?) ?\|$", pathlib.Path("docs/errors.md").read_text(), re.M)
assert [row[0] for row in rows] == ["E001", "E002", "E003", "E004", "E005"], rows
assert rows[2][1] == "retired"
for error in (slash, large):
    assert (error.code, str(error.status), error.text) in rows, (error.text, rows)
    assert not error.text.endswith(".") and "secret" not in error.text and "big" not in error.text
print("PASS")
