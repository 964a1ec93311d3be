"""The HTTP service and its page: `dgn serve`; needs `dgn[serve]`.

    limits = ServiceLimits()
    service = Service(processes(None, limits, workers=2), limits)
    serve(service, "127.0.0.1", 8000)

`create_app` gives an ASGI application, for uvicorn or any other server.
"""

import importlib
from typing import TYPE_CHECKING, Any

from dgn.errors import require_extra

if TYPE_CHECKING:
    from dgn.apps.service.app import Service, create_app
    from dgn.apps.service.pool import processes
    from dgn.apps.service.refusals import ServiceLimits
    from dgn.apps.service.server import LOOPBACK, serve

for _package in ("fastapi", "httptools", "uvicorn", "prometheus_client", "pyversity"):
    require_extra("The service", package=_package, extra="serve")

__all__ = ["LOOPBACK", "Service", "ServiceLimits", "create_app", "processes", "serve"]

_MODULES = {
    "LOOPBACK": "server",
    "Service": "app",
    "ServiceLimits": "refusals",
    "create_app": "app",
    "processes": "pool",
    "serve": "server",
}


def __getattr__(name: str) -> Any:
    # Imported when they are used: a worker needs neither FastAPI nor uvicorn.
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
