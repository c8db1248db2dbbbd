"""What is done with a testbed beside measuring: looking at it, reserving it, cleaning it."""
