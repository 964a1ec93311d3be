"""The HTTP service and its page: `dgn serve`; needs `dgn[serve]`.

    app.py      what each path answers
    models.py   what may be sent, and what is answered
    limits.py   what every request must pass: host, token, size
    metrics.py  numbers and log
    serve.py    worker processes, sockets and signals
    page/       the page

`create_app` makes an ASGI application, for uvicorn or any other server.
"""

from dgn.errors import require_extra

for _package in ("fastapi", "uvicorn", "prometheus_client", "pyversity"):
    require_extra("The service", package=_package, extra="serve")

from dgn.apps.service.app import create_app
from dgn.apps.service.limits import ServiceLimits
from dgn.apps.service.serve import LOOPBACK, serve

__all__ = ["LOOPBACK", "ServiceLimits", "create_app", "serve"]
