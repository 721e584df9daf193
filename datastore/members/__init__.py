"""Members: who may not write, what is erased with a member, and the files that are exported about them."""
