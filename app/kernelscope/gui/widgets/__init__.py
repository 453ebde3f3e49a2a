"""Widgets that know nothing of filters or pictures."""
