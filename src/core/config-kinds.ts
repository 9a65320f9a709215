import { isIP } from "node:net"
import ipaddr from "ipaddr.js"
import { parseMailbox } from "../lib/address"
import { ownFault } from "../lib/spf"

/** How one kind of setting is read from text (environment, flags) or from a TOML value. */
export interface SettingKind<V> {
  /** Completes "… is not valid: expected …". */
  readonly expected: string
  /** The value, or undefined when the text or TOML value does not fit. */
  readonly parse: (raw: unknown) => V | undefined
  /** How `config show` and `config explain` write the value. */
  readonly show: (value: V) => unknown
}

/** One setting: the values it takes, its default, and its meaning in one or two sentences. */
export interface SettingKey<V> {
  readonly kind: SettingKind<NonNullable<V>>
  readonly fallback: V
  readonly about: string
  /** Its value is never printed. */
  readonly secret: boolean
}

/** A setting with a default. */
export const key = <V>(kind: SettingKind<V>, fallback: V, about: string): SettingKey<V> =>
  ({ kind, fallback, about, secret: false }) as SettingKey<V>

/** A setting that may be missing. */
export const optional = <V>(
  kind: SettingKind<V>,
  about: string,
  secret = false,
): SettingKey<V | null> => ({ kind, fallback: null, about, secret }) as SettingKey<V | null>

export const kind = <V>(
  expected: string,
  parse: SettingKind<V>["parse"],
  show: SettingKind<V>["show"] = (value) => value,
): SettingKind<V> => ({ expected, parse, show })

const textThat = (expected: string, fits: (text: string) => boolean): SettingKind<string> =>
  kind(expected, (raw) => (typeof raw === "string" && fits(raw) ? raw : undefined))

export const text = textThat("a text without line breaks", (value) => !/[\r\n\0]/.test(value))

export const folder = textThat("a path", (value) => value !== "" && !value.includes("\0"))

const HOST = /^(?=.{1,253}$)(?:[a-z0-9_-]{1,63}\.)*(?!\d+$)[a-z0-9_-]{1,63}$/

/** As records and commands write it: in lower case, without the final dot of a zone file. */
export const hostName = kind("a host name or an IP address", (raw) => {
  const name = typeof raw === "string" ? raw.toLowerCase().replace(/\.$/, "") : ""
  return isIP(name) !== 0 || HOST.test(name) ? name : undefined
})

export const awsRegion = textThat("an AWS region, such as eu-west-1", (value) =>
  /^[a-z]{2}(-[a-z]+)+-\d{1,2}$/.test(value),
)

/** `none` takes back what a weaker source names, such as a file. */
export const databaseUrl = kind<string | null>("a URL that begins with postgres://", (raw) => {
  if (raw === "none") return null
  return typeof raw === "string" && /^postgres(ql)?:\/\/./.test(raw) ? raw : undefined
})

export const webUrl = kind("an http:// or https:// URL without a query", (raw) => {
  if (typeof raw !== "string" || !URL.canParse(raw)) return undefined
  const { protocol, search, hash, username } = new URL(raw)
  if (!/^https?:$/.test(protocol) || search || hash || username) return undefined
  return raw.replace(/\/+$/, "")
})

export const mailbox = textThat(
  "one address, such as a@example.com or Name <a@example.com>",
  (value) => parseMailbox(value) !== undefined,
)

/** 32 bytes, because that is what AES-256 takes. */
export const key32 = textThat(
  "32 bytes in base64 (openssl rand -base64 32)",
  (value) => /^[A-Za-z0-9+/]{43}=?$/.test(value) && Buffer.from(value, "base64").length === 32,
)

export const oneOf = <const T extends string>(...choices: T[]): SettingKind<T> =>
  kind(`one of ${choices.join(", ")}`, (raw) => choices.find((choice) => choice === raw))

/** A period, or a time of day. */
export const backupSchedule = textThat(
  'off, hourly, daily, weekly, or a time of day in UTC, such as "03:30"',
  (value) => /^(off|hourly|daily|weekly|([01]\d|2[0-3]):[0-5]\d)$/.test(value),
)

export const flag = kind<boolean>("true or false", (raw) => {
  if (typeof raw === "boolean") return raw
  if (typeof raw !== "string") return undefined
  if (/^(true|yes|on|1)$/i.test(raw)) return true
  return /^(false|no|off|0)$/i.test(raw) ? false : undefined
})

export const whole = (least: number, most: number): SettingKind<number> =>
  kind(`a whole number from ${least} to ${most}`, (raw) => {
    const value = typeof raw === "string" && /^\d+$/.test(raw) ? Number(raw) : raw
    const fits = typeof value === "number" && Number.isInteger(value)
    return fits && value >= least && value <= most ? value : undefined
  })

/** Above 0: a threshold of nothing is met by everybody. */
export const percent = kind<number>("a percentage above 0 and up to 100, such as 0.1", (raw) => {
  const value = typeof raw === "string" && /^\d+(\.\d+)?$/.test(raw) ? Number(raw) : raw
  return typeof value === "number" && value > 0 && value <= 100 ? value : undefined
})

const units = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const
type Unit = keyof typeof units

/** Always written with its unit: a plain number could mean seconds or milliseconds. */
export const duration = kind<number>(
  'a duration with its unit, such as "250ms", "30s", "5m" or "48h"',
  (raw) => {
    const found = typeof raw === "string" && /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(raw)
    return found ? Math.round(Number(found[1]) * units[found[2] as Unit]) : undefined
  },
  (value) => {
    const fitting = (["h", "m", "s", "ms"] as const).find((unit) => value % units[unit] === 0)
    return value === 0 ? "0s" : `${value / units[fitting ?? "ms"]}${fitting ?? "ms"}`
  },
)

/** A duration with bounds. The error names both. */
export const durationFrom = (least: string, most: string): SettingKind<number> =>
  kind(
    `${duration.expected}, from ${least} to ${most}`,
    (raw) => {
      const value = duration.parse(raw)
      const [low = 0, high = 0] = [least, most].map(duration.parse)
      return value !== undefined && value >= low && value <= high ? value : undefined
    },
    duration.show,
  )

/** `:8080`, `127.0.0.1:1025`, `[::1]:25`: what a server listens on. */
export const listen = textThat("host:port or :port, with a port from 0 to 65535", (value) => {
  const found = /^(\[[0-9a-fA-F:.]+\]|[^:[\]\s]*):(\d{1,5})$/.exec(value)
  return found !== null && Number(found[2]) <= 65_535
})

/** The two parts of a checked `listen` text; an empty host means every address. */
export function hostAndPort(value: string): { host: string; port: number } {
  const colon = value.lastIndexOf(":")
  const host = value.slice(0, colon).replace(/^\[|\]$/g, "")
  return { host, port: Number(value.slice(colon + 1)) }
}

/** A TOML list, or one text with commas between the items. */
const list = (
  expected: string,
  item: (text: string) => string | undefined,
): SettingKind<string[]> =>
  kind(`a list of ${expected}`, (raw) => {
    const parts = typeof raw === "string" ? raw.split(",") : raw
    if (!Array.isArray(parts)) return undefined
    const items: string[] = []
    for (const part of parts) {
      if (typeof part !== "string") return undefined
      const value = part.trim() === "" ? "" : item(part.trim())
      if (value === undefined) return undefined
      if (value !== "") items.push(value)
    }
    return items
  })

const isNetwork = (value: string) => ipaddr.isValid(value) || ipaddr.isValidCIDR(value)
const isName = (value: string) => /^[a-z0-9_-]+(\.[a-z0-9_-]+)*\.?$/.test(value)

export const networks = list("IP addresses and networks, such as 10.0.0.0/8", (value) =>
  isNetwork(value) ? value : undefined,
)

/** Where outbound requests may go although it is not the public internet. */
export const destinations = list(
  "IP addresses, networks (such as 10.0.0.0/8) and host names",
  (value) => {
    const name = value.toLowerCase()
    return isNetwork(name) || isName(name) ? name : undefined
  },
)

export const domains = list("domain names", (value) =>
  isName(value.toLowerCase()) ? value.toLowerCase().replace(/\.$/, "") : undefined,
)

/** As a URL has it after `https://`. */
export const httpsHosts = list("host names, each with its port where that is not 443", (value) => {
  const [, name = "", port] = /^([^:]+)(?::(\d{1,5}))?$/.exec(value.toLowerCase()) ?? []
  return isName(name) && !name.endsWith(".") && port !== "443" ? value.toLowerCase() : undefined
})

/** `9.9.9.9`, `127.0.0.1:5353`, `[::1]:53` or a bare IPv6 address. */
export const nameServers = list("name servers, each an IP address or address:port", (value) => {
  const bare = /^(?:\[(.+)\]|([0-9.]+))(?::(\d{1,5}))?$/.exec(value)
  return ipaddr.isValid(bare?.[1] ?? bare?.[2] ?? value) ? value : undefined
})

export const spfMechanisms = list("SPF mechanisms, such as include:spf.example.com", (value) =>
  ownFault(value) === null ? value : undefined,
)
