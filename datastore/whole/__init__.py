"""The table as a whole: what belongs to no part, and what knows all of them."""
