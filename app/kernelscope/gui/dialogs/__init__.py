"""Dialogs and secondary windows."""
