"""Tests of the project itself: its pages, package, style, and the guards of the test suite."""
