"""Programs started beside a deployment, and helpers for them."""
