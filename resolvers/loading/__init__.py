"""Fields of many records at once, and what a process remembers that no read answers."""
