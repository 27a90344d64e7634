"""What all dialects share: the tables and functions that turn wire values into vocabulary values and back."""
