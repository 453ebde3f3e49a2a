"""Windows that open beside the main window."""
