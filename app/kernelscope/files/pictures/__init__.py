"""One module for each format of pictures."""
