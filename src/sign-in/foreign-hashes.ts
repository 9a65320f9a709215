import { pbkdf2, timingSafeEqual } from "node:crypto"
import { promisify } from "node:util"

const derive = promisify(pbkdf2)

/** OWASP's least for argon2id: 19 MiB and two passes. */
export const OWN_COST = { algorithm: "argon2id", memoryCost: 19_456, timeCost: 2 } as const

const OWN = `$argon2id$v=19$m=${OWN_COST.memoryCost},t=${OWN_COST.timeCost},p=1$`

/** Whether a hash is of another making or cost than ours: the next right password renews it. */
export const needsRehash = (hash: string): boolean => !hash.startsWith(OWN)

// Within each cap a comparison takes at most about a second of one core and 256 MiB.
const MOST_BCRYPT_COST = 14
const LEAST_BCRYPT_COST = 4
const MOST_MEMORY_KIB = 262_144
const MOST_MEMORY_PASSES_KIB = 3 * MOST_MEMORY_KIB
const MOST_LANES = 16
const MOST_ITERATIONS = 2_000_000

/** Bcrypt looks no further. Bun hashes a longer password first, as nobody else does. */
const BCRYPT_BYTES = 72

/** A password's hash that another system made. */
export interface ForeignHash {
  kind: "bcrypt" | "argon2" | "pbkdf2"
  proves: (password: string) => Promise<boolean>
}

/**
 * Reads a hash of bcrypt (`$2a$`, `$2b$`, `$2y$`), of argon2 as a PHC string, or of PBKDF2 as a PHC string,
 * in passlib's form, or in Django's. Undefined for other texts, and for one that asks for too much work.
 */
export const readHash = (text: string): ForeignHash | undefined =>
  readBcrypt(text) ?? readArgon2(text) ?? readPbkdf2(text)

function readBcrypt(text: string): ForeignHash | undefined {
  const [, cost = ""] = /^\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{53}$/.exec(text) ?? []
  if (!(Number(cost) >= LEAST_BCRYPT_COST && Number(cost) <= MOST_BCRYPT_COST)) return undefined
  return {
    kind: "bcrypt",
    proves: (password) =>
      Bun.password.verify(Buffer.from(password).subarray(0, BCRYPT_BYTES), text, "bcrypt"),
  }
}

/** Salts and hashes of 8 to 64 bytes. */
const ARGON2 =
  /^\$(argon2(?:id|i|d))\$v=19\$m=(\d{1,7}),t=(\d{1,5}),p=(\d{1,3})\$[A-Za-z0-9+/]{11,86}\$[A-Za-z0-9+/]{11,86}$/

function readArgon2(text: string): ForeignHash | undefined {
  const [, name = "", ...costs] = ARGON2.exec(text) ?? []
  const [memory = 0, passes = 0, lanes = 0] = costs.map(Number)
  const is_whole = passes > 0 && lanes > 0 && memory >= 8 * lanes // RFC 9106, section 3.1
  const is_bearable = memory <= MOST_MEMORY_KIB && memory * passes <= MOST_MEMORY_PASSES_KIB
  if (!is_whole || !is_bearable || lanes > MOST_LANES) return undefined
  const algorithm = name as "argon2id" | "argon2i" | "argon2d"
  return { kind: "argon2", proves: (password) => Bun.password.verify(password, text, algorithm) }
}

const DJANGO = /^pbkdf2_(sha256)\$(\d{1,7})\$([^$]{1,128})\$([A-Za-z0-9+/]{43}=)$/
/** With `i=` and `l=`, or the number of iterations alone, as passlib writes it with dots for pluses. */
const PHC =
  /^\$pbkdf2-(sha256|sha512)\$(?:i=)?(\d{1,7})(?:,l=\d+)?\$([A-Za-z0-9+/.]{8,171})\$([A-Za-z0-9+/.]{22,171})$/

function readPbkdf2(text: string): ForeignHash | undefined {
  const django = DJANGO.exec(text)
  const [, digest, count, salt, hash] = django ?? PHC.exec(text) ?? []
  const iterations = Number(count)
  const is_bearable = iterations > 0 && iterations <= MOST_ITERATIONS
  if (!digest || !salt || !hash || !is_bearable) return undefined
  const expected = bytesOf(hash)
  const salted = django ? Buffer.from(salt) : bytesOf(salt)
  return {
    kind: "pbkdf2",
    proves: async (password) =>
      timingSafeEqual(
        await derive(password, salted, iterations, expected.length, digest),
        expected,
      ),
  }
}

const bytesOf = (base64: string) => Buffer.from(base64.replaceAll(".", "+"), "base64")
