"""Measuring: operations, lanes, blocks. Knows providers through the protocol only."""
