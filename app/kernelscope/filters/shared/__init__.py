"""Parts that several filters are made of."""
