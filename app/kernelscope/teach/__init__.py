"""The pages that explain: manual, handbook of filters and levels, lecture."""
