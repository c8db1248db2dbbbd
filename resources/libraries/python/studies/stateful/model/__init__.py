"""Types of the study of stateful density."""
