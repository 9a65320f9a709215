import {
  durationFrom,
  flag,
  folder,
  hostName,
  key,
  listen,
  networks,
  oneOf,
  optional,
  percent,
  text,
  whole,
} from "./config-kinds"

/** The relay that delivers mail where `delivery.provider` is smtp. */
export const relayKeys = {
  "providers.smtp.host": optional(
    hostName,
    "Host name of the mail relay. Required when delivery.provider is smtp.",
  ),
  "providers.smtp.port": key(whole(1, 65_535), 587, "Port of the mail relay."),
  "providers.smtp.username": optional(
    text,
    "User name at the mail relay. Without it, mail is sent without a login.",
  ),
  "providers.smtp.password": optional(text, "Password at the mail relay.", true),
  "providers.smtp.tls": key(
    oneOf("starttls", "implicit", "none"),
    "starttls",
    "TLS to the mail relay: starttls requires STARTTLS, implicit begins with TLS, none sends without TLS.",
  ),
}

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

const HOUR = 3_600_000
const MOST = 1_000_000_000

/** When bad rates slow an account down, and when they stop it. */
export const reputationKeys = {
  "reputation.enforced": key(
    flag,
    true,
    "Whether bad rates throttle and freeze accounts, and hold tags and templates. With false, rates are only shown.",
  ),
  "reputation.window": key(
    durationFrom("1h", "28d"),
    7 * 24 * HOUR,
    "Time over which bounce and complaint rates are computed, in whole hours.",
  ),
  "reputation.throttle.min_sent": key(
    whole(1, MOST),
    200,
    "Minimum number of sent emails in the window before rates can throttle an account.",
  ),
  "reputation.throttle.bounce_percent": key(
    percent,
    5,
    "Share of permanent bounces, in percent, at which an account is throttled.",
  ),
  "reputation.throttle.complaint_percent": key(
    percent,
    0.1,
    "Share of complaints, in percent, at which an account is throttled.",
  ),
  "reputation.throttle.hour_sent": key(
    whole(1, MOST),
    1000,
    "Number of emails in one hour above which a sudden rise can throttle an account.",
  ),
  "reputation.throttle.hour_factor": key(
    whole(1, MOST),
    5,
    "How many times its usual hour an account must send in one hour to be throttled.",
  ),
  "reputation.throttle.least_percent": key(
    percent,
    25,
    "Share of sends, in percent, that is rejected at the threshold of throttling.",
  ),
  "reputation.throttle.most_percent": key(
    percent,
    90,
    "Share of sends, in percent, that is rejected at the threshold of freezing.",
  ),
  "reputation.recovery.after": key(
    durationFrom("1m", "28d"),
    6 * HOUR,
    "How long all rates must stay low before a throttled account becomes active again.",
  ),
  "reputation.recovery.percent": key(
    percent,
    80,
    "Share of a threshold, in percent, below which a rate is low. From this share on, owners are warned.",
  ),
  "reputation.freeze.min_sent": key(
    whole(1, MOST),
    500,
    "Minimum number of sent emails in the window before rates can freeze an account.",
  ),
  "reputation.freeze.bounce_percent": key(
    percent,
    10,
    "Share of permanent bounces, in percent, at which an account is frozen.",
  ),
  "reputation.freeze.complaint_percent": key(
    percent,
    0.5,
    "Share of complaints, in percent, at which an account is frozen.",
  ),
  "reputation.hold.min_sent": key(
    whole(1, MOST),
    50,
    "Minimum number of sent emails with a tag or template before complaints can hold it.",
  ),
  "reputation.hold.complaint_percent": key(
    percent,
    0.5,
    "Share of complaints, in percent, at which a tag or template is held.",
  ),
} as const
