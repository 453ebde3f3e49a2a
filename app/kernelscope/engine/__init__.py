"""*When* a filter runs: requests, recipes, cancelling, timing, one worker thread."""
