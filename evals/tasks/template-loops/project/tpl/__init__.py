from tpl.render import TemplateError, render

__all__ = ["TemplateError", "render"]
