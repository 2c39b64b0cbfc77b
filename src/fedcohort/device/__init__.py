"""How long clients take, in virtual seconds."""
