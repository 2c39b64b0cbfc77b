"""From typed words to a run: composing, checking, assembling, fitting. Alone in knowing Hydra."""
