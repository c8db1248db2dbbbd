"""Programs that are sent to a node as they are and run by its Python: one file each, of the standard library alone."""
