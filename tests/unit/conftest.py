"""How long an example takes says nothing of the code on a machine that does other things, too."""

from hypothesis import settings

settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")
