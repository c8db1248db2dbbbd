"""Python and Robot libraries."""
