"""What are we asked, and what is right? Readers, the page store, examples, batches.

`dgn.data.synthetic` needs NumPy alone; the readers need `dgn[data]`.
"""
