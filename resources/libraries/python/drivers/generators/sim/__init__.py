"""The simulated generator."""
