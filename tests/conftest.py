from hypothesis import settings

settings.register_profile("dpfast", deadline=None, derandomize=True, max_examples=25)
settings.load_profile("dpfast")
