"""Which set is best? Set functions, searches and their compiled forms: arrays in, subsets out."""
