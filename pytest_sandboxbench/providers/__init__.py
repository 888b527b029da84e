"""One file a system. Nothing here is imported before a bench is collected."""
