"""The study of stateful density on the reading side."""
