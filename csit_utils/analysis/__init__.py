"""Pure: from rows to matrices, ratios and sentences."""
