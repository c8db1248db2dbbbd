"""The suite's libraries; docs/architecture.md shows how the rooms connect."""
