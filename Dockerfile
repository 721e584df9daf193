# The first stage builds the explorer and the wheel. The final image has Python, the locked packages and Ringside.
# `.ci/container.py` runs these steps without a container engine and starts the result.
FROM python:3.13-slim AS build
WORKDIR /src
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
COPY requirements.lock requirements-local.lock ./
RUN python -m venv /opt/build \
    && /opt/build/bin/pip install -qq --require-hashes -r requirements-local.lock
RUN python -m venv --without-pip /opt/ringside \
    && /opt/build/bin/pip --python /opt/ringside install -qq --require-hashes -r requirements.lock
COPY explorer explorer
COPY examples examples
RUN PATH="/opt/build/bin:$PATH" \
    && npm ci --silent --prefix explorer \
    && npm run --silent build --prefix explorer -- --logLevel warn
COPY pyproject.toml README.md LICENSE ./
COPY datastore datastore
COPY resolvers resolvers
COPY schema schema
COPY server server
RUN /opt/build/bin/pip wheel -qq --no-deps --no-build-isolation --no-index -w /src/dist . \
    && /opt/build/bin/pip --python /opt/ringside install -qq --no-deps --no-index /src/dist/ringside-*.whl

FROM python:3.13-slim
COPY --from=build /opt/ringside /opt/ringside
ENV PATH="/opt/ringside/bin:$PATH" PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
# A container has no table of its own. `required` makes the service stop with a clear message if no address is given.
ENV RINGSIDE_DYNAMODB_URL=required RINGSIDE_DATA=/data
USER 10001:10001
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s --retries=3 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/livez', timeout=2)"]
ENTRYPOINT ["ringside"]
CMD ["serve", "--host", "0.0.0.0"]
