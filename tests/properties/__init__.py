"""What must hold for any input: lives of sandboxes against a model, parsers, statistics, records."""
