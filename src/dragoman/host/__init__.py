"""The machine underneath: processes, pipes and environments. Knows nothing of ACP.

Nothing is imported here: an agent on stdio must not pay for what starts children.
"""
