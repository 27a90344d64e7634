"""Find the place of an edit in a text and compute the text that results. Pure: `engine.find_edit` is the way in."""
