"""Ids are made by chance, and tests compare whole transcripts: here ids become sess1, msg1, msg2, … as they appear."""

import json
import re
from typing import Any


def plain_ids(value: Any) -> Any:
    """The same JSON with every id of ours replaced by its kind and its number in order of appearance."""
    names: dict[str, str] = {}
    counts: dict[str, int] = {}

    def name(match: re.Match[str]) -> str:
        if match[0] not in names:
            counts[match[1]] = counts.get(match[1], 0) + 1
            names[match[0]] = f"{match[1]}{counts[match[1]]}"
        return names[match[0]]

    return json.loads(re.sub(r"\b(sess|msg|call|term)_[0-9a-f]{24,32}\b", name, json.dumps(value)))
