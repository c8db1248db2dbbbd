"""What is measured: trials, counters, energy, call stacks, noise, features, and the events that a study causes."""
