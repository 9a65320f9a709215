import { generateKeyPairSync, randomBytes, sign } from "node:crypto"
import ipaddr from "ipaddr.js"
import { isAddress } from "./ip-ranges"

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
