"""Tests of the plugin, each on a suite of its own in a folder of its own."""
