# Both stages are of one Debian release, so that what the first compiles or installs runs on the second, and
# both have the same Python at /usr/bin/python3.
#
# A tag can come to mean another image; a digest cannot. A release looks the digests up and builds with them;
# `make pin-images` writes them here, behind the tags. An argument overrides an image, to build from a mirror:
#   docker buildx build --build-arg BUILD_IMAGE=mirror.example/library/debian:bookworm-slim .
# References name their registry: without one, docker looks on Docker Hub, where there is no distroless, and
# podman asks or refuses.
ARG BUILD_IMAGE=docker.io/library/debian:bookworm-slim
ARG RUN_IMAGE=gcr.io/distroless/python3-debian12:nonroot

FROM ${BUILD_IMAGE} AS build
RUN apt-get update \
 && apt-get install --yes --no-install-recommends python3 python3-venv \
 && rm -rf /var/lib/apt/lists/*
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
WORKDIR /source
# The dependencies change less often than the code: they come first, and are cached.
COPY requirements/build.txt requirements/runtime.txt requirements/
RUN python3 -m venv /opt/build \
 && /opt/build/bin/pip install --require-hashes --requirement requirements/build.txt
# Without pip: nothing is installed at run time, and what venv compiles of it carries the time.
RUN python3 -m venv --without-pip /opt/fleet-scheduler \
 && /opt/build/bin/pip --python /opt/fleet-scheduler/bin/python install --no-compile --require-hashes \
      --requirement requirements/runtime.txt
COPY pyproject.toml README.md LICENSE ./
# The command line holds objects against the schemas: function/cli/admission has links to these folders.
COPY apis apis
COPY package/input package/input
COPY function function
RUN /opt/build/bin/pip wheel --no-deps --no-build-isolation --wheel-dir /dist . \
 && /opt/build/bin/pip --python /opt/fleet-scheduler/bin/python install --no-compile --no-deps --no-index /dist/*.whl
# Compiled by content, not by time: the same files give the same image, and a read-only one starts quickly.
RUN /opt/fleet-scheduler/bin/python -m compileall -q --invalidation-mode unchecked-hash /opt/fleet-scheduler/lib

FROM ${RUN_IMAGE}
COPY --from=build /opt/fleet-scheduler /opt/fleet-scheduler
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
WORKDIR /
EXPOSE 9443
USER 2000:2000
ENTRYPOINT ["/opt/fleet-scheduler/bin/function"]
