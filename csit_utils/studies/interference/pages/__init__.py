"""Pages of the report."""
