"""Says what it means that a session works in the home folder, or in a folder that holds it. Pure."""

import os
from collections.abc import Sequence


def wide_workspace_notice(roots: Sequence[str], home: str) -> str:
    """Return a sentence for the user if one of the real `roots` holds the whole home folder; else empty."""
    held = [root for root in roots if home and os.path.commonpath([root, home]) == root]
    if not held:
        return ""
    what = "your home folder" if held[0] == home else f"{held[0]}, which holds your home folder"
    return (
        f"This session works in {what}: the agent can look at everything in it and send what it reads to the model, "
        "and what it may change without a question can be any of your files. Files with keys and passwords, and files "
        "that run by themselves, ask first. To keep the rest out of reach, open a session in the folder of one project."
    )
