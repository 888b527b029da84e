"""How often verdicts on budgets are wrong, by simulation: ``python -m tests.simulation``."""
