import sys

from convert.units import UNITS

if __name__ == "__main__":
    amount, unit = float(sys.argv[1]), sys.argv[2]
    print(amount * UNITS[unit])
