# One stage installs and compiles, the other only runs. Nothing is migrated at start: `dormouse migrate` is a command of
# its own, run with the same image before a release goes live.
#
#   docker build --tag dormouse .
#   docker run --env-file .env dormouse dormouse migrate
#   docker run --env-file .env --publish 8080:8080 --read-only --tmpfs /tmp \
#       --cap-drop ALL --security-opt no-new-privileges dormouse

FROM python:3.11.14-slim-bookworm@sha256:65a93d69fa75478d554f4ad27c85c1e69fa184956261b4301ebaf6dbb0a3543d AS build

ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /srv/dormouse
RUN python -m venv /venv
COPY requirements.txt .ci/build-requirements.txt ./
RUN /venv/bin/pip install --require-hashes --no-deps --only-binary :all: --requirement requirements.txt \
    && /venv/bin/pip install --require-hashes --no-deps --only-binary :all: --requirement build-requirements.txt
COPY pyproject.toml README.md LICENSE ./
COPY app app
COPY migrations migrations
# Editable, as in development: app and migrations stay side by side, where `dormouse migrate` looks for them.
RUN /venv/bin/pip install --no-deps --no-build-isolation --editable . \
    && /venv/bin/pip uninstall --yes setuptools pip
# Never compared with the sources again: nothing changes in an image, and a cold start is shorter.
RUN /venv/bin/python -m compileall -q -f --invalidation-mode unchecked-hash /venv/lib /srv/dormouse/app /srv/dormouse/migrations


FROM python:3.11.14-slim-bookworm@sha256:65a93d69fa75478d554f4ad27c85c1e69fa184956261b4301ebaf6dbb0a3543d

# The outbox is only used while EMAIL_URL is not set; below /tmp it works with a read-only root too.
ENV PATH=/venv/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PORT=8080 OUTBOX_DIR=/tmp/outbox
WORKDIR /srv/dormouse
# What runs needs no installer.
RUN python -m pip uninstall --yes setuptools wheel pip
COPY --from=build /venv /venv
COPY --from=build /srv/dormouse/app app
COPY --from=build /srv/dormouse/migrations migrations
USER 65532:65532
EXPOSE 8080
STOPSIGNAL SIGTERM
CMD ["dormouse", "serve"]
