"""Evidence of results, coverage of studies, and findings of checks."""
