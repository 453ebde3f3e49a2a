"""Panels around the picture: parameters, options, timings, quality."""
