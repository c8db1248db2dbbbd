"""Who does it: one file per product; product words stay inside."""
