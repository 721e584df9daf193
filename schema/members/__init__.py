"""Members: what is done with them, and the keys of machines."""
