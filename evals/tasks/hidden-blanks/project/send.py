import sys

from texts.mail import CLOSING, GREETING, TOTAL

if __name__ == "__main__":
    print(GREETING, TOTAL.format(total=sys.argv[1]), CLOSING, sep="\n")
