"""Further forms of a report: SARIF, Markdown, one HTML page, a badge. Each is a pure function of a `CheckReport`.

They serve every role: what was judged is a subject with a name, rows and frames. `report.schema.json` is the published
schema of the JSON report (`exports.as_json`).
"""

from importlib.resources import files


def json_schema() -> str:
    """Return the JSON schema of the JSON report, as text."""
    return files(__package__).joinpath("report.schema.json").read_text(encoding="utf-8")
