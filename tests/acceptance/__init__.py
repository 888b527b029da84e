"""What people report about benchmarks of sandboxes, as cases; the numbers are those of the list of cases."""
