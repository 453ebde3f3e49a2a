"""Tests of the vocabulary of filters."""
