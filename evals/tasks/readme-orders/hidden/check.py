import pathlib
import re

text = pathlib.Path("docs/overview.md").read_text()
assert len(re.findall(r"^# ", text, re.M)) == 1
names = re.findall(r"^- `?(?:mailer[./])?(\w+)(?:\.py)?`?:", text, re.M)
assert names == ["audit", "queue", "smtp"], names
for word in ("record", "until", "SMTP"):
    assert word in text, word
assert "!" not in text and "approved" not in text
print("PASS")
