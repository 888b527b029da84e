"""What people read. Made from series and header alone, so that records print the same report again."""
