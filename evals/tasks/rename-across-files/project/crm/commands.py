import importlib

# command -> module:function
COMMANDS = {"customer": "crm.api:fetch", "report": "crm.report:report"}


def call(name, *arguments):
    module, _, function = COMMANDS[name].partition(":")
    return getattr(importlib.import_module(module), function)(*arguments)
