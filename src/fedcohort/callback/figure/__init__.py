"""The figures of a run, one module each. matplotlib is imported inside functions: a run that draws nothing is not slowed."""
