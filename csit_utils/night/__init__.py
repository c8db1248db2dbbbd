"""`./csit night`: the tests to choose from, the runs of a night, and their report."""
