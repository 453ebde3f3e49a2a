"""Pictures and volumes as values, without files, engine or window."""
