"""The study of outages: what an event at one network function costs every other service instance."""
