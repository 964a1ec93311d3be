"""dgn inside other libraries: one module each, which needs the extra of the same name.

| module | for |
| --- | --- |
| `langchain` | `DGNDocumentCompressor`, for `ContextualCompressionRetriever` |
| `llama_index` | `DGNNodePostprocessor` |
| `haystack_integrations.components.rankers.dgn` | `DGNRanker`, a component of Haystack |
| `rerankers` | `DGNRanker`, a ranker of the package rerankers |
| `sentence_transformers` | a user's encoder as vectors, its cosines or a CrossEncoder as scores |
| `sklearn` | `RowSelector`, `FeatureSelector` |
| `tables` | `select_rows`, for pandas and polars |
| `mcp` | `dgn mcp`: the tool `select_evidence` for assistants |
"""
