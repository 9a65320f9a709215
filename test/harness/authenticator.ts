import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from "node:crypto"

/** Options for a browser, as far as this authenticator reads them. */
interface CeremonyOptions {
  challenge: string
  rp?: { id: string }
  rpId?: string
  user?: { id: string }
}

interface Gesture {
  /** The page that asks. */
  origin?: string
  /** Whether it recognized the person. */
  verified?: boolean
  /** In place of the next number. */
  counter?: number
}

/** Of a page that uses a passkey; tests name another origin. */
export const PAGE = "https://shop.example.com"

const PRESENT = 0x01
const VERIFIED = 0x04
const HAS_KEY = 0x40

/** An authenticator with one passkey of ES256, in software: what it signs is right, unless a test says otherwise. */
export function softwareAuthenticator() {
  const id = randomBytes(32)
  const pair = generateKeyPairSync("ec", { namedCurve: "P-256" })
  let counter = 0
  let user_handle = ""
  const common = { id: url(id), rawId: url(id), type: "public-key" as const }
  const dataOf = (rp_id: string, more: number, { verified = true, ...gesture }: Gesture) => {
    counter = gesture.counter ?? counter + 1
    const count = Buffer.alloc(4)
    count.writeUInt32BE(counter)
    const flags = PRESENT | more | (verified ? VERIFIED : 0)
    return Buffer.concat([sha256(rp_id), Buffer.of(flags), count])
  }
  return {
    /** As `navigator.credentials.create` and `toJSON`. */
    create({ challenge, rp, user }: CeremonyOptions, gesture: Gesture = {}, statement: Cbor = {}) {
      user_handle = user?.id ?? ""
      const length = Buffer.of(0, id.length)
      const key = encode(coseOf(pair.publicKey))
      const data = dataOf(rp?.id ?? "", HAS_KEY, gesture)
      const authData = Buffer.concat([data, Buffer.alloc(16), length, id, key])
      const fmt = Object.keys(statement).length > 0 ? "packed" : "none"
      const clientDataJSON = clientData("webauthn.create", challenge, gesture)
      const attestationObject = url(encode({ fmt, attStmt: statement, authData }))
      const response = { clientDataJSON, attestationObject, transports: ["internal"] }
      return { ...common, response, clientExtensionResults: {} }
    },
    /** As `navigator.credentials.get` and `toJSON`. */
    get({ challenge, rpId = "" }: CeremonyOptions, gesture: Gesture = {}) {
      const data = dataOf(rpId, 0, gesture)
      const clientDataJSON = clientData("webauthn.get", challenge, gesture)
      const signed = Buffer.concat([data, sha256(Buffer.from(clientDataJSON, "base64url"))])
      const signature = url(sign("sha256", signed, pair.privateKey))
      const response = { clientDataJSON, signature, authenticatorData: url(data) }
      return { ...common, response: { ...response, userHandle: user_handle } }
    },
  }
}

const url = (bytes: Buffer) => bytes.toString("base64url")

const sha256 = (data: string | Buffer) => createHash("sha256").update(data).digest()

const clientData = (type: string, challenge: string, { origin = PAGE }: Gesture) =>
  url(Buffer.from(JSON.stringify({ type, challenge, origin, crossOrigin: false })))

/** RFC 9053, section 7.1.1. */
function coseOf(key: KeyObject): Map<number, Cbor> {
  const { x = "", y = "" } = key.export({ format: "jwk" })
  const coordinates = [x, y].map((text) => Buffer.from(text, "base64url"))
  return new Map<number, Cbor>([[1, 2], [3, -7], [-1, 1], ...coordinates.entries().map(at)])
}

const at = ([index, bytes]: [number, Buffer]): [number, Cbor] => [-2 - index, bytes]

type Cbor = number | string | Buffer | Cbor[] | Map<number, Cbor> | { [name: string]: Cbor }

/** The few kinds of RFC 8949 that WebAuthn needs here. */
function encode(value: Cbor): Buffer {
  if (typeof value === "number") return value < 0 ? head(1, -1 - value) : head(0, value)
  if (typeof value === "string") return Buffer.concat([head(3, value.length), Buffer.from(value)])
  if (Buffer.isBuffer(value)) return Buffer.concat([head(2, value.length), value])
  if (Array.isArray(value)) return Buffer.concat([head(4, value.length), ...value.map(encode)])
  const entries: [Cbor, Cbor][] = value instanceof Map ? [...value] : Object.entries(value)
  return Buffer.concat([head(5, entries.length), ...entries.flat().map(encode)])
}

function head(kind: number, length: number): Buffer {
  if (length < 24) return Buffer.of((kind << 5) | length)
  return length < 256
    ? Buffer.of((kind << 5) | 24, length)
    : Buffer.of((kind << 5) | 25, length >> 8, length & 255)
}
