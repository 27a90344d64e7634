"""`./dev matrix`: real agents and real clients against the rows of `dragoman check`, as a page of the documentation."""
