"""The page of one test."""
