"""Being an ACP agent, for any author: `Agent`, the sessions of its clients, their turns, and how they are stored."""
