"""Local servers that speak the wire protocol of a hosted provider and make real sandboxes behind it."""
