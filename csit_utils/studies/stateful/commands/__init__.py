"""Commands of the study of stateful density."""
