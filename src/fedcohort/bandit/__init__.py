"""Mathematics that bandit selectors share."""
