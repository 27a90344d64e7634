"""Working out on paper what a few lines of Python would do, without running them."""
