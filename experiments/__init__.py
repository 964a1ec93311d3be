"""What a researcher runs from a clone: the paper's reproduction, teacher models, comparisons.

Each module is a command: `python -m experiments.NAME --help`. Nothing here is part of the wheel.
"""
