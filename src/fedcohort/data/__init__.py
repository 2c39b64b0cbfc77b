"""The federation: who holds which samples, and how unequal that is."""
