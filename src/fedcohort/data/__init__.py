"""The federation: the samples of each client and of the server, and measures of their heterogeneity."""
