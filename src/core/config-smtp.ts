import { flag, folder, hostName, key, listen, networks, optional, whole } from "./config-kinds"

/** The settings of the mail servers, and of their certificate. */
export const smtpKeys = {
  "tls.cert": optional(
    folder,
    "PEM file of the TLS certificate of the mail servers, with its chain. Without it, the server signs a certificate itself.",
  ),
  "tls.key": optional(folder, "PEM file of the private key of tls.cert, without a passphrase."),

  "smtp.host": optional(
    hostName,
    "Host name that the mail servers give to clients. Without it, the host of the MX records is used.",
  ),
  "smtp.trusted_proxies": key(
    networks,
    [],
    "Proxies that begin each connection to a mail server with a PROXY header (version 1 or 2). A listed proxy must send it.",
  ),
  "smtp.submission.enabled": key(flag, true, "Whether programs can submit mail by SMTP."),
  "smtp.submission.listen": key(
    listen,
    ":587",
    "Address and port for submission with STARTTLS. Without a host, it listens on all addresses.",
  ),
  "smtp.submission.implicit_listen": optional(
    listen,
    "Address and port for submission that begins with TLS, such as :465. Without it, there is no such port.",
  ),
  "smtp.submission.max_connections": key(
    whole(1, 10_000),
    500,
    "Maximum number of connections for submission.",
  ),
  "smtp.submission.per_ip": key(
    whole(1, 10_000),
    20,
    "Maximum number of connections for submission from one address.",
  ),
  "smtp.inbound.enabled": key(flag, true, "Whether other mail servers can deliver mail here."),
  "smtp.inbound.listen": key(
    listen,
    ":25",
    "Address and port where other mail servers deliver. Without a host, it listens on all addresses.",
  ),
  "smtp.inbound.max_connections": key(
    whole(1, 10_000),
    500,
    "Maximum number of connections from other mail servers.",
  ),
  "smtp.inbound.per_ip": key(
    whole(1, 10_000),
    20,
    "Maximum number of connections from one mail server.",
  ),
  "smtp.inbound.per_minute": key(
    whole(1, 100_000),
    60,
    "Maximum number of new connections from one mail server in a minute.",
  ),
  "smtp.inbound.max_recipients": key(
    whole(1, 1000),
    100,
    "Maximum number of recipients of one received mail.",
  ),

  "inbound.enforce_dmarc": key(
    flag,
    false,
    "Whether mail is refused that fails DMARC, if the policy of its domain asks for that (p=reject).",
  ),
  "inbound.mb_per_hour": key(
    whole(1, 1_000_000),
    200,
    "Megabytes that one delivering address may store in an hour over port 25. More is answered 452, but for bounces, complaints, unsubscribes and tracked replies.",
  ),
} as const
