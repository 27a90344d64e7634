import re

from tpl.escape import escape
from tpl.lookup import lookup


class TemplateError(Exception):
    """A template that cannot be rendered."""


def render(template, values):
    def loop(found):
        return "".join(render(found[3], {**values, found[1]: item}) for item in lookup(found[2], values))

    template = re.sub(r"\{%\s*for\s+(\w+)\s+in\s+([\w.]+)\s*%\}(.*?)\{%\s*end\s*%\}", loop, template, flags=re.DOTALL)
    return re.sub(r"\{\{\s*([\w.]+)\s*\}\}", lambda found: escape(lookup(found[1], values)), template)
