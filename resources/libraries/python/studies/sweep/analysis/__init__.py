"""From points of a sweep to functions of the load, and what to do with them. Pure."""
