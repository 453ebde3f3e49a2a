"""*When* a filter runs: images, requests, cancelling, timing, one worker."""
