# privategpt with its two bundled models: no network is needed at run time.
#   docker build -t privategpt .
#   docker build -t privategpt --build-arg TORCH_INDEX=<PyTorch's CPU wheel index> .   (much smaller)
FROM python:3.11-slim AS build

ARG TORCH_INDEX=""
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /app
RUN python -m venv /app/.venv
ENV PATH=/app/.venv/bin:$PATH
COPY requirements.lock requirements-nodeps.lock ./
RUN pip install ${TORCH_INDEX:+--extra-index-url "${TORCH_INDEX}"} -r requirements.lock \
    && pip install --no-deps -r requirements-nodeps.lock
COPY pyproject.toml README.md settings*.yaml ./
COPY privategpt privategpt
RUN pip install --no-deps --no-build-isolation --editable . \
    && privategpt models --verify

FROM python:3.11-slim

RUN useradd --create-home --uid 10001 privategpt \
    && install -d -o privategpt -m 0700 /data
WORKDIR /app
COPY --from=build /app /app
# The rule takes the product's name for a secret.
# hadolint ignore=DL3064
ENV PATH=/app/.venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PRIVATEGPT_DATA_DIR=/data \
    PRIVATEGPT_SERVER__HOST=0.0.0.0
USER 10001
VOLUME /data
EXPOSE 8001
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8001/health', timeout=2)"]
CMD ["privategpt", "serve"]
