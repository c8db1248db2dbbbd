"""Network functions as programs of the user's own."""
