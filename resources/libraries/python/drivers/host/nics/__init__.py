"""Physical ports: facts, drivers, takeover and restore."""
