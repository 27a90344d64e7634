"""Limits of the plan that we have booked: they come before our settings."""

MOST_SECONDS_PER_CALL = 8
MOST_CALLS = 2
