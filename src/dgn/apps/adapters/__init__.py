"""dgn inside other libraries: one module each, which needs the extra of the same name.

| module | for |
| --- | --- |
| `langchain` | `DGNDocumentCompressor`, for `ContextualCompressionRetriever` |
| `llama_index` | `DGNNodePostprocessor` |
| `haystack_integrations.components.rankers.dgn` | `DGNRanker`, a component of Haystack |
"""
