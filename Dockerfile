# The first stage builds the explorer, the elements and the wheel. The image has Python, the locked packages and
# Ringside; the target `embedded` adds the embedded engine, for one machine. `.ci/container.py` runs these steps without
# a container engine and starts the results.
#
# The digest is the one that the official images publish for the tag: github.com/docker-library/repo-info,
# repos/python/remote/3.13-slim.md. Renovate proposes newer ones.
FROM python:3.13-slim@sha256:9662417aace5ae7b8e2609cce472b72a8958e134ba372808abe9cc1a0c0125e6 AS build
WORKDIR /src
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
COPY requirements.lock requirements-image.lock ./
RUN python -m venv /opt/build \
    && /opt/build/bin/pip install -qq --require-hashes -r requirements-image.lock
RUN python -m venv --without-pip /opt/ringside \
    && /opt/build/bin/pip --python /opt/ringside install -qq --require-hashes -r requirements.lock
COPY explorer explorer
COPY examples examples
COPY elements elements
# The elements have the solver of challenges from the page for signing in.
COPY server/http/pages/sign-in server/http/pages/sign-in
COPY schema schema
RUN PATH="/opt/build/bin:$PATH" \
    && npm ci --silent --prefix explorer \
    && npm run --silent build --prefix explorer
COPY pyproject.toml LICENSE ./
COPY deploy/wheel.md deploy/wheel_build.py deploy/notices.py deploy/
COPY datastore datastore
COPY resolvers resolvers
COPY server server
# The bill of materials, as CycloneDX, and the licences of everything, which the service also shows.
RUN PATH="/opt/build/bin:$PATH" \
    && mkdir -p /opt/ringside/share/ringside \
    && npm sbom --silent --sbom-format cyclonedx --package-lock-only --omit dev --prefix explorer \
        > /opt/ringside/share/ringside/explorer.cdx.json \
    && cyclonedx-py environment --pyproject pyproject.toml --output-reproducible \
        -o /opt/ringside/share/ringside/python.cdx.json /opt/ringside/bin/python \
    && python deploy/notices.py /opt/ringside/lib/python3*/site-packages server/http/pages/explorer/licenses.md \
    && cp LICENSE server/http/pages/explorer/licenses.md /opt/ringside/share/ringside/
RUN /opt/build/bin/pip wheel -qq --no-deps --no-build-isolation --no-index -w /src/dist . \
    && /opt/build/bin/pip --python /opt/ringside install -qq --no-deps --no-index /src/dist/ringside-*.whl

FROM python:3.13-slim@sha256:9662417aace5ae7b8e2609cce472b72a8958e134ba372808abe9cc1a0c0125e6 AS service
# A release adds the version, the commit and the source: .github/workflows/release.yml
LABEL org.opencontainers.image.title="Ringside" \
    org.opencontainers.image.description="A GraphQL backend for fan and reader communities, on one DynamoDB table" \
    org.opencontainers.image.licenses="MIT" \
    org.opencontainers.image.base.name="docker.io/library/python:3.13-slim"
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

# The embedded engine's program is locked for x64 only.
FROM build AS engine
COPY deploy/engine/package.json deploy/engine/package-lock.json deploy/engine/
RUN PATH="/opt/build/bin:$PATH" \
    && npm ci --silent --prefix deploy/engine \
    && mkdir -p /opt/engine/bin /opt/engine/share/ringside /opt/engine/data \
    && cp deploy/engine/node_modules/@dynoxide/linux-x64/dynoxide /opt/engine/bin/ \
    && npm sbom --silent --sbom-format cyclonedx --package-lock-only --prefix deploy/engine \
        > /opt/engine/share/ringside/engine.cdx.json

# A volume at /data keeps the table. A new volume gets the owner of the folder in the image.
FROM service AS embedded
COPY --from=engine /opt/engine/bin/dynoxide /opt/ringside/bin/dynoxide
COPY --from=engine /opt/engine/share/ringside/engine.cdx.json /opt/ringside/share/ringside/engine.cdx.json
COPY --from=engine --chown=10001:10001 /opt/engine/data /data
ENV RINGSIDE_DYNAMODB_URL=embedded

# What is built if no target is named.
FROM service
