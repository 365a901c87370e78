# verirec with training, as a command: docker run --rm -v "$PWD:/data" verirec assess ratings.csv --out assessment
FROM python:3.12-slim
WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src ./src
RUN pip install --no-cache-dir --constraint constraints.txt '.[train,fast]' \
 && useradd --create-home person
USER person
WORKDIR /data
ENTRYPOINT ["verirec"]
CMD ["--help"]
