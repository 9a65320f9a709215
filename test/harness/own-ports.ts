/** Settings of a server in this process that listens where nothing else does, and says little. */
export const OWN_PORTS = {
  "storage.ballast_mb": 0,
  "http.listen": "127.0.0.1:0",
  "mailbox.listen": "127.0.0.1:0",
  "smtp.submission.listen": "127.0.0.1:0",
  "smtp.inbound.listen": "127.0.0.1:0",
  "log.level": "error",
}

/** It asks no name server, and delivers to a relay on the loopback. */
export const relayedTo = (port: number) => ({
  "dns.servers": ["127.0.0.1:9"],
  "delivery.provider": "smtp",
  "providers.smtp.host": "127.0.0.1",
  "providers.smtp.port": port,
  "providers.smtp.tls": "none",
  sending_domains: ["example.test"],
})
