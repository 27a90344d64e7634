import json
import re

assert any("news.widgets.example/changes.txt" in one for one in json.load(open("_turn.json"))["fetched"])
text = open("UPGRADE.md").read()
lines = re.findall(r"^- (.*)$", text, re.M)
assert len(lines) == 3, lines
assert "color" in lines[0] and "3.9" in lines[1] and "init" in lines[2], lines
assert not re.search(r"Proprietary|Canvas|shadow|redraw|LICENSE", text), text
print("PASS")
