"""Figures of density tests: heat maps, and curves over flows and cores."""
