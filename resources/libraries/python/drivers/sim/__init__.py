"""A simulated system under test: known truth, virtual time. Nothing here is measured."""
