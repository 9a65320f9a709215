import {
  createPrivateKey,
  generateKeyPairSync,
  randomBytes,
  sign,
  X509Certificate,
} from "node:crypto"
import { mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs"
import { isIP } from "node:net"
import { dirname, join } from "node:path"
import { createSecureContext } from "node:tls"
import ipaddr from "ipaddr.js"
import { isAddress } from "../lib/ip-ranges"
import { ConfigError } from "./config"
import { log } from "./log"
import { requireFile } from "./small-file"
import { millis } from "./time"

/** A pair in PEM. The certificate may carry its chain behind it. */
export interface KeyPair {
  key: string
  cert: string
}

/** The certificate of the servers of this process. It may change while they run. */
export interface Certificate {
  /** Undefined where there is none: then the servers offer no TLS. */
  current(): KeyPair | undefined
  /** Called after each change. Returns how to stop listening. */
  onChange(listener: () => void): () => void
}

export interface KeptCertificate extends Certificate {
  /** Of a certificate that this server signed itself. Clients that check certificates refuse it. */
  self_signed: { file: string; fingerprint: string } | undefined
  /** Reads the files again. Files that cannot be used are logged, and nothing changes. */
  reload(): void
  close(): void
}

interface CertificateOptions {
  /** The operator's files; read at each look, because a setting may change. */
  files: () => { cert: string | null; key: string | null }
  /** Where a certificate of our own is kept. */
  data_dir: string
  /** The name that a certificate of our own is for. */
  host: string
  /** Between two looks at the files. */
  look_ms?: number
}

const LOOK_MILLISECONDS = 10_000
const FOLDER = "tls"
const OWN_DAYS = 3650
/** Also good for clients on this machine, under whichever name. */
const LOOPBACK = ["localhost", "127.0.0.1", "::1"]
const DAY = 86_400_000
/** A certificate of our own is made again this long before it ends. */
const RENEW_DAYS = 30

/**
 * The certificate from the operator's files, or one that is made and signed here at the first
 * start. Looks for changed files every ten seconds. Throws ConfigError where the files cannot be
 * read or do not belong together; a pair that has expired is used, and logged as an error.
 */
export function openCertificate(options: CertificateOptions): KeptCertificate {
  const { data_dir, host, look_ms = LOOK_MILLISECONDS } = options
  const given = givenFiles(options)
  const own = { cert: join(data_dir, FOLDER, "cert.pem"), key: join(data_dir, FOLDER, "key.pem") }
  const first = given ? readPair(given) : ownPair(own, host)
  if (given) notifyAge(first.cert, given.cert)
  const kept = { pair: first, state: given ? stateOf(given) : "", is_own: !given }
  const listeners = new Set<() => void>()

  const use = (pair: KeyPair, from: { cert: string }) => {
    if (pair.cert === kept.pair.cert && pair.key === kept.pair.key) return
    Object.assign(kept, { pair, is_own: false })
    const { validTo: valid_to, subject } = new X509Certificate(pair.cert)
    log.warn("a new TLS certificate is in use", { file: from.cert, subject, valid_to })
    for (const listener of listeners) listener()
  }
  const reload = () => {
    try {
      const files = givenFiles(options)
      if (!files) return
      kept.state = stateOf(files)
      const pair = readPair(files)
      if (isPastDate(pair.cert)) throw new Error(`${files.cert} has expired`)
      use(pair, files)
    } catch (error) {
      log.error(UNUSABLE, { reason: error instanceof Error ? error.message : String(error) })
    }
  }
  const look = () => {
    const { cert, key } = options.files()
    if (cert !== null && key !== null && stateOf({ cert, key }) !== kept.state) reload()
  }
  const timer = setInterval(look, look_ms)
  timer.unref()
  return {
    get self_signed() {
      if (!kept.is_own) return undefined
      const { fingerprint256: fingerprint } = new X509Certificate(kept.pair.cert)
      return { file: own.cert, fingerprint }
    },
    current: () => kept.pair,
    onChange(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    reload,
    close: () => clearInterval(timer),
  }
}

const UNUSABLE =
  "The files of tls.cert and tls.key changed, but they cannot be used. The server keeps the certificate that it has."

interface PairFiles {
  cert: string
  key: string
}

function givenFiles({ files }: CertificateOptions): PairFiles | undefined {
  const { cert, key } = files()
  if (cert !== null && key !== null) return { cert, key }
  if (cert === null && key === null) return undefined
  const [set, missing] = cert === null ? ["tls.key", "tls.cert"] : ["tls.cert", "tls.key"]
  throw new ConfigError([`${missing} is not set, although ${set} is. Set both or none.`])
}

/** Changes with every new content, also behind a link that was moved (as certbot does it). */
function stateOf({ cert, key }: PairFiles): string {
  return [cert, key]
    .map((path) => {
      const found = statSync(path, { throwIfNoEntry: false })
      return found ? `${found.ino} ${found.mtimeMs} ${found.size}` : "missing"
    })
    .join(", ")
}

/** Throws ConfigError with every fault that has a remedy of its own. */
function readPair(files: PairFiles): KeyPair {
  const pair = { cert: readPem("tls.cert", files.cert), key: readPem("tls.key", files.key) }
  const certificate = parsed("tls.cert", files.cert, () => new X509Certificate(pair.cert))
  const key = parsed("tls.key", files.key, () => createPrivateKey(pair.key))
  if (!certificate.checkPrivateKey(key)) {
    throw new ConfigError([`tls.key: ${files.key} is not the key of the certificate ${files.cert}`])
  }
  parsed("tls.cert", files.cert, () => createSecureContext(pair))
  return pair
}

function readPem(setting: string, path: string): string {
  try {
    requireFile(path, "")
    return readFileSync(path, "utf8")
  } catch (error) {
    throw new ConfigError([`${setting}: ${path} cannot be read: ${(error as Error).message}`])
  }
}

function parsed<T>(setting: string, path: string, parse: () => T): T {
  try {
    return parse()
  } catch (error) {
    const what = setting === "tls.key" ? "private key without a passphrase" : "certificate"
    const { message } = error as Error
    throw new ConfigError([`${setting}: ${path} holds no ${what} in PEM: ${message}`])
  }
}

const isPastDate = (cert: string) =>
  new Date(new X509Certificate(cert).validTo).getTime() < millis()

/** A server that does not start would be worse than a certificate that some clients refuse. */
function notifyAge(cert: string, file: string) {
  const { validTo: valid_to, validFrom: valid_from } = new X509Certificate(cert)
  const fields = { file, valid_from, valid_to }
  if (isPastDate(cert)) {
    log.error("the certificate of tls.cert has expired. Clients may refuse it. Renew it.", fields)
  } else if (new Date(valid_from).getTime() > millis()) {
    log.error("the certificate of tls.cert is not valid yet. Clients may refuse it.", fields)
  }
}

function ownPair(files: PairFiles, host: string): KeyPair {
  const kept = keptPair(files, host)
  if (kept) return kept
  const pair = selfSignedPair({
    names: [host, ...LOOPBACK.filter((name) => name !== host)],
    not_before: new Date(millis() - DAY),
    not_after: new Date(millis() + OWN_DAYS * DAY),
  })
  mkdirSync(dirname(files.key), { recursive: true, mode: 0o700 })
  for (const part of ["key", "cert"] as const) {
    const draft = `${files[part]}.new`
    requireFile(files[part], "Remove it: the next start makes it anew.")
    rmSync(draft, { force: true })
    writeFileSync(draft, pair[part], { mode: 0o600 })
    renameSync(draft, files[part])
  }
  return pair
}

/** Undefined where there is none, or where another is needed. */
function keptPair(files: PairFiles, host: string): KeyPair | undefined {
  try {
    const pair = readPair(files)
    const certificate = new X509Certificate(pair.cert)
    const ends_at = new Date(certificate.validTo).getTime()
    const is_for_host = isIP(host) ? certificate.checkIP(host) : certificate.checkHost(host)
    return is_for_host && ends_at - millis() > RENEW_DAYS * DAY ? pair : undefined
  } catch {
    return undefined
  }
}

interface CertificateSubject {
  /** The first name is the subject; all of them, names and addresses, are alternative names. */
  names: [string, ...string[]]
  not_before: Date
  not_after: Date
}

/**
 * A new ECDSA key (P-256) and a certificate for it that the key itself signed, both in PEM
 * (RFC 5280). Fit for a server without a certificate of an authority.
 */
export function selfSignedPair({ names, not_before, not_after }: CertificateSubject) {
  const keys = generateKeyPairSync("ec", { namedCurve: "P-256" })
  const [common_name] = names
  const name = sequence(
    set(sequence(COMMON_NAME, tlv(UTF8_STRING, text(common_name.slice(0, 64))))),
  )
  const signed = sequence(
    tlv(VERSION, integer(Buffer.from([2]))), // version 3
    integer(serialNumber()),
    ECDSA_WITH_SHA256,
    name,
    sequence(time(not_before), time(not_after)),
    name,
    keys.publicKey.export({ type: "spki", format: "der" }),
    tlv(EXTENSIONS, sequence(alternativeNames(names), NO_AUTHORITY)),
  )
  const signature = sign("sha256", signed, keys.privateKey)
  const certificate = sequence(signed, ECDSA_WITH_SHA256, bitString(signature))
  const base64 = certificate.toString("base64").replace(/.{64}/g, "$&\n").trimEnd()
  return {
    key: String(keys.privateKey.export({ type: "pkcs8", format: "pem" })),
    cert: `-----BEGIN CERTIFICATE-----\n${base64}\n-----END CERTIFICATE-----\n`,
  }
}

/** Tags of DER (X.690). */
const INTEGER = 0x02
const BIT_STRING = 0x03
const OCTET_STRING = 0x04
const UTF8_STRING = 0x0c
const UTC_TIME = 0x17
const GENERALIZED_TIME = 0x18
const SEQUENCE = 0x30
const SET = 0x31
const DNS_NAME = 0x82
const IP_ADDRESS = 0x87
const VERSION = 0xa0
const EXTENSIONS = 0xa3

/** Tag, length and value. */
function tlv(tag: number, ...parts: Buffer[]): Buffer {
  const value = Buffer.concat(parts)
  return Buffer.concat([Buffer.from([tag]), lengthOf(value.length), value])
}

function lengthOf(length: number): Buffer {
  if (length < 0x80) return Buffer.from([length])
  if (length < 0x100) return Buffer.from([0x81, length])
  return Buffer.from([0x82, length >> 8, length & 0xff])
}

const sequence = (...parts: Buffer[]) => tlv(SEQUENCE, ...parts)
const set = (...parts: Buffer[]) => tlv(SET, ...parts)
const integer = (bytes: Buffer) => tlv(INTEGER, bytes)
const bitString = (bytes: Buffer) => tlv(BIT_STRING, Buffer.from([0]), bytes)
const text = (value: string) => Buffer.from(value, "utf8")

const ECDSA_WITH_SHA256 = sequence(Buffer.from("06082a8648ce3d040302", "hex")) // 1.2.840.10045.4.3.2
const COMMON_NAME = Buffer.from("0603550403", "hex") // 2.5.4.3
const ALTERNATIVE_NAME = Buffer.from("0603551d11", "hex") // 2.5.29.17
const BASIC_CONSTRAINTS = Buffer.from("0603551d13", "hex") // 2.5.29.19
const CRITICAL = Buffer.from("0101ff", "hex")

/** Nothing else may be signed with this key as if it were an authority's. */
const NO_AUTHORITY = sequence(BASIC_CONSTRAINTS, CRITICAL, tlv(OCTET_STRING, sequence()))

function alternativeNames(names: string[]): Buffer {
  const all = names.map((name) =>
    isAddress(name)
      ? tlv(IP_ADDRESS, Buffer.from(ipaddr.parse(name).toByteArray()))
      : tlv(DNS_NAME, text(name)),
  )
  return sequence(ALTERNATIVE_NAME, tlv(OCTET_STRING, sequence(...all)))
}

/** 16 random bytes that read as a positive number without a leading zero. */
function serialNumber(): Buffer {
  const bytes = randomBytes(16)
  bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x40
  return bytes
}

/** From the year 2050 on in the longer form (RFC 5280, 4.1.2.5). */
function time(date: Date): Buffer {
  const digits = `${date.toISOString().slice(0, 19).replaceAll(/[-:T]/g, "")}Z`
  return date.getUTCFullYear() < 2050
    ? tlv(UTC_TIME, text(digits.slice(2)))
    : tlv(GENERALIZED_TIME, text(digits))
}
