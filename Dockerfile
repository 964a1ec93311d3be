# dgn serve in a container: a user without rights; nothing is written at run time.
#
#   docker build -t dgn .
#   docker run --rm --read-only --cap-drop ALL -p 127.0.0.1:8000:8000 dgn

FROM python:3.12-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY pyproject.toml hatch_build.py README.md LICENSE LICENSES.md ./
COPY src src
RUN python -m venv /app && /app/bin/pip install --no-cache-dir '.[serve]'

FROM python:3.12-slim
COPY --from=build /app /app
RUN useradd --system --no-create-home --shell /usr/sbin/nologin dgn
USER dgn
ENV PATH=/app/bin:$PATH PYTHONDONTWRITEBYTECODE=1
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=3s --start-period=10s \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/healthz', timeout=2)"]
# Inside a container, other addresses than loopback are needed; the host decides who can reach it.
ENTRYPOINT ["dgn", "serve", "--host", "0.0.0.0"]
