"""Training runs: groups of many steps, their log, and what both say together."""
