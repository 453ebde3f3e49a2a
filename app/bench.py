"""Timing tables."""
