"""More than one picture, or more than fits: batches of files, and files larger than memory."""
