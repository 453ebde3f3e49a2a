"""Tests of the library: filters as functions."""
