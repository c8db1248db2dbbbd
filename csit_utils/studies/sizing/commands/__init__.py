"""Commands of the study; each module is a command."""
