"""`python -m dragoman` is the program `dragoman`, where its folder is not on the path."""

import sys

from dragoman.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
