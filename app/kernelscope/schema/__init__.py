"""The vocabulary of filters: parameters, levels, borders and launches, as plain data."""
