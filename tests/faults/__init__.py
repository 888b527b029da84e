"""What a run made is destroyed and what it measured is kept, whatever happens: provider by fault, as a table.

``python -m tests.faults`` prints it; ``pytest -m full tests/faults`` tests the same cells.
"""
