import os
import sys

from service.settings import load

if __name__ == "__main__":
    settings = load(sys.argv[1], os.environ)
    print(f"{settings['http']['host']}:{settings['http']['port']}")
