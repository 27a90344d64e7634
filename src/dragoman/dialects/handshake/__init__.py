"""`initialize` in every version, read and written by hand, so that it loads the tables of none."""
