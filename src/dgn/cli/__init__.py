"""The commands: each is a thin call of one room."""
