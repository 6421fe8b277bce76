# The search service, as a user without privileges. Documents and index are in the volume /data.
# Build from the root of the repository:
#   docker build -f docker/service.Dockerfile -t birchbark-service .
# Run; the key is what clients send (Authorization: Bearer KEY):
#   docker run -p 8000:8000 -v "$PWD/notes:/data/documents:ro" -v birchbark:/data -e BIRCHBARK_API_KEY=KEY birchbark-service
FROM python:3.11-slim
COPY pyproject.toml README.md LICENSE /src/
COPY src /src/src
RUN pip install --no-cache-dir "/src[dense,files,serve]" && rm -rf /src
RUN useradd --uid 10001 --create-home birchbark && mkdir -p /data/documents && chown -R birchbark /data
USER birchbark
# Compile, as this user, what is compiled only once per installation.
RUN mkdir /tmp/a && echo "Bees dance." > /tmp/a/a.txt && birchbark index /tmp/a --to /tmp/a.index \
 && birchbark search /tmp/a.index bees && rm -r /tmp/a /tmp/a.index
WORKDIR /data
VOLUME /data
EXPOSE 8000
HEALTHCHECK --start-period=60s CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8000/readyz', timeout=5)"]
ENTRYPOINT ["birchbark", "serve", "/data/documents", "--host", "0.0.0.0", "--port", "8000"]
