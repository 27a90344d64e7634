import sys
from pathlib import Path

from worker.files import sizes

if __name__ == "__main__":
    for name, size in sizes(Path(sys.argv[1])).items():
        print(name, size)
