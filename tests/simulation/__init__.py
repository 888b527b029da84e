"""How often verdicts on budgets are wrong, on series whose truth is known."""
