"""Pages of the report, one module each; the overview is in `site`, and studies have theirs."""
