"""What are we asked, and what is right?"""
