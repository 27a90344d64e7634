"""The edit corpus: edits with the drift that models produce, graded by the file that should result."""
