"""The journal, the result files, the schema of a result."""
