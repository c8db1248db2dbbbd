"""Cost of a study of stateful density."""
