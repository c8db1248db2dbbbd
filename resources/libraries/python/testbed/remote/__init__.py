"""The roles of a cell, fulfilled by calls to agents on the nodes of a lab."""
