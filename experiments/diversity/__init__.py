"""Where diversity is the label: pools of images, texts and features in place of sentences."""
