"""The benchmark window."""
