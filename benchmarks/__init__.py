"""Speed, measured as ratios, side by side in one run; see each module for what it compares."""
