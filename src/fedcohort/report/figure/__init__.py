"""The figures of a run, one module each. matplotlib is imported inside functions: start-up does not wait."""
