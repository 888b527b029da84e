"""What the project does with secrets, with text and files of others, and with names that a provider chose."""
