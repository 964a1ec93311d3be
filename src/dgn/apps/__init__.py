"""How is it used? The command line, the HTTP service, adapters of other libraries, and jobs.

The fastest-moving dependencies (FastAPI, MCP, Haystack, LangChain, Ray) are imported here alone.
"""
