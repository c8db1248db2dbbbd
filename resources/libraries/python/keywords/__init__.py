"""Robot libraries, thin and typed; the only importers of robot."""
