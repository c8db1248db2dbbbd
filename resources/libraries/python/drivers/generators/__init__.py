"""Traffic generators."""
