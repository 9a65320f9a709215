/** A relay that takes connections and says nothing: whoever delivers through it waits. */
export interface HeldRelay extends Disposable {
  /** Settings under which a server delivers through it, with one connection at a time. */
  environment: Record<string, string>
  /** A sender that such a server accepts. */
  from: string
}

export function heldRelay(): HeldRelay {
  const listener = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } })
  return {
    from: "shop@bench.test",
    environment: {
      BELFRY_SENDING_DOMAINS: "bench.test",
      BELFRY_DELIVERY_PROVIDER: "smtp",
      BELFRY_DELIVERY_CONCURRENCY: "1",
      BELFRY_PROVIDERS_SMTP_HOST: "127.0.0.1",
      BELFRY_PROVIDERS_SMTP_PORT: String(listener.port),
      BELFRY_PROVIDERS_SMTP_TLS: "none",
    },
    [Symbol.dispose]: () => listener.stop(true),
  }
}
