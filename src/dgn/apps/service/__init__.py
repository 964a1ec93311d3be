"""The HTTP service and its page: `dgn serve`; needs `dgn[serve]`.

    limits = ServiceLimits()
    service = Service(processes(None, limits, workers=2), limits)
    serve(service, "127.0.0.1", 8000)

`create_app` gives an ASGI application, for uvicorn or any other server.
"""

from dgn.errors import require_extra

for _package in ("fastapi", "httptools", "uvicorn", "prometheus_client", "pyversity"):
    require_extra("The service", package=_package, extra="serve")

from dgn.apps.service.app import Service, create_app
from dgn.apps.service.pool import processes
from dgn.apps.service.refusals import ServiceLimits
from dgn.apps.service.server import LOOPBACK, serve

__all__ = ["LOOPBACK", "Service", "ServiceLimits", "create_app", "processes", "serve"]
