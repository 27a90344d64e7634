import re

from tpl.escape import escape
from tpl.lookup import lookup


class TemplateError(Exception):
    """A template that cannot be rendered."""


def render(template, values):
    """Return the template with every {{ path }} replaced by its escaped value."""
    return re.sub(r"\{\{\s*([\w.]+)\s*\}\}", lambda found: escape(lookup(found[1], values)), template)
