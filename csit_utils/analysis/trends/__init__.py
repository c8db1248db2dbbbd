"""Series of results over time: steps, two bands, drift and events."""
