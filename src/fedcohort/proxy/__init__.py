"""Unlabelled inputs that the server holds, for methods that distil what clients learnt."""
