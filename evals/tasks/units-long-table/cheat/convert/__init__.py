from convert import units

units.UNITS["nautical mile"] = 1.852
