"""Views of pictures and volumes."""
