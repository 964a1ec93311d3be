"""The paper's experiment from beginning to end: files in, a report out."""
