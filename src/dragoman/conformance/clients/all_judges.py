"""All judges: importing this registers them in `judges.JUDGES`."""

from dragoman.conformance.clients import judges_of_lent, judges_of_questions
from dragoman.conformance.clients.judges import JUDGES

__all__ = ["JUDGES", "judges_of_lent", "judges_of_questions"]
