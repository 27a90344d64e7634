"""From what the user wrote to what is wanted: rules, and no guessing."""
