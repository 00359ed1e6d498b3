"""How hypothesis searches: briefly by default, for long with `pytest --hypothesis-profile=long`."""

from hypothesis import settings

settings.register_profile("brief", deadline=None)
settings.register_profile("long", deadline=None, max_examples=20_000)
settings.load_profile("brief")
