import re

from convert.units import UNITS

lines = open("convert/units.py").read().splitlines()
assert len(lines) == 1209, len(lines)
count = 0
for line in lines:
    found = re.fullmatch(r'    "([^"]+)": ([\d.e+-]+),  # exactly ([\d.e+-]+)', line)
    if found:
        count += 1
        assert float(found[2]) == float(found[3]) == UNITS[found[1]], line
assert count == 1200 and len(UNITS) == 1200
assert UNITS["nautical mile"] == 1.852
assert sum(float(line.split("exactly ")[1]) for line in lines if "exactly " in line) == 13181.283514700017
print("PASS")
