# The command alone, in an image without a shell:
#   docker build -t conformax .
#   docker run -p 127.0.0.1:8080:8080 -v "$PWD:/models:ro" -v state:/state -e CONFORMAX_TOKEN conformax \
#     serve /models/model.json --listen 0.0.0.0:8080 --state /state
FROM rust:1.95-slim-bookworm AS build
WORKDIR /conformax
COPY . .
RUN cargo build --release --locked -p conformax-cli --no-default-features --features serve \
    && strip target/release/conformax \
    && mkdir /state

FROM gcr.io/distroless/cc-debian12:nonroot
COPY --from=build /conformax/target/release/conformax /usr/local/bin/conformax
COPY --from=build --chown=nonroot /state /state
USER nonroot
EXPOSE 8080
ENTRYPOINT ["/usr/local/bin/conformax"]
CMD ["--help"]
