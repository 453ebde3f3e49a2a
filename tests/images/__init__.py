"""Tests of pictures, volumes and the phantom."""
