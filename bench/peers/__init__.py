"""The programs under the stopwatch, one process each. Kept empty of code: every peer pays for what is here at start."""
