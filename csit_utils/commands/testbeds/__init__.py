"""Commands on testbeds: check, reserve, tune, qualify, emulate."""
