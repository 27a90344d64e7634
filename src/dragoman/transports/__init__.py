"""Moving bytes between two programs: memory, stdio, child. `contract` says what each of them promises.

Nothing is imported here: an agent on stdio must not pay for what starts children.
"""
