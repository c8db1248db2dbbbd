"""Ways to machines, and what is brought there."""
