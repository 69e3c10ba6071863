"""Files that people or we have written, read: bounded, each fault with its line, in our words."""
