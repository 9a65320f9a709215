import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  hkdfSync,
  randomBytes,
  timingSafeEqual,
} from "node:crypto"
import {
  closeSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  statSync,
  unlinkSync,
  writeSync,
} from "node:fs"
import { join } from "node:path"
import { codeOf } from "./faults"
import { newId } from "./ids"

const VERSION = "v1"
const IV_BYTES = 12
const TAG_BYTES = 16

export interface Secrets {
  /** Eight hex digits that name the master key without telling anything about it. */
  readonly key_id: string
  /** AES-256-GCM; the context (`table:id:column`) must be given again to open it. */
  seal(plain: string, context: string): string
  /** Throws SecretError for another key, another context or a changed byte. */
  open(sealed: string, context: string): string
  /** HMAC-SHA-256 with a separate key for each purpose, so that two uses cannot be confused. */
  mac(purpose: string, text: string): Buffer
}

/** A sealed text that cannot be opened. The message never holds the text or the key. */
export class SecretError extends Error {
  override readonly name = "SecretError"
}

export function openSecrets(options: MasterKeyOptions): Secrets {
  const master = masterKey(options)
  const sealing = derive(master, "belfry seal")
  const key_id = derive(master, "belfry key id").subarray(0, 4).toString("hex")
  const purposes = new Map<string, Buffer>()

  return {
    key_id,
    seal(plain, context) {
      const iv = randomBytes(IV_BYTES)
      const cipher = createCipheriv("aes-256-gcm", sealing, iv)
      cipher.setAAD(additional(key_id, context))
      const bytes = Buffer.concat([iv, cipher.update(plain, "utf8"), cipher.final()])
      const whole = Buffer.concat([bytes, cipher.getAuthTag()])
      return `${VERSION}.${key_id}.${whole.toString("base64url")}`
    },
    open(sealed, context) {
      const whole = payload(sealed, key_id)
      const decipher = createDecipheriv("aes-256-gcm", sealing, whole.subarray(0, IV_BYTES))
      decipher.setAAD(additional(key_id, context))
      decipher.setAuthTag(whole.subarray(-TAG_BYTES))
      try {
        const plain = decipher.update(whole.subarray(IV_BYTES, -TAG_BYTES))
        return Buffer.concat([plain, decipher.final()]).toString("utf8")
      } catch {
        throw new SecretError("An encrypted value was changed, or it belongs to another record.")
      }
    },
    mac(purpose, text) {
      const key = purposes.get(purpose) ?? derive(master, `belfry mac ${purpose}`)
      purposes.set(purpose, key)
      return createHmac("sha256", key).update(text, "utf8").digest()
    },
  }
}

/** RFC 5869: one independent key for each use of the master key. */
const derive = (master: Buffer, use: string): Buffer =>
  Buffer.from(hkdfSync("sha256", master, Buffer.alloc(0), use, 32))

const additional = (key_id: string, context: string) =>
  Buffer.from(`${VERSION}.${key_id}.${context}`, "utf8")

function payload(sealed: string, key_id: string): Buffer {
  const [version, sealed_with, text, ...rest] = sealed.split(".")
  if (version !== VERSION || !sealed_with || !text || rest.length > 0) {
    throw new SecretError("An encrypted value has a form that this version does not know.")
  }
  if (!same(sealed_with, key_id)) {
    throw new SecretError(
      `A value was encrypted with master key ${sealed_with.slice(0, 16)}, but the current key is ${key_id}.`,
    )
  }
  const whole = Buffer.from(text, "base64url")
  // Decoding forgives stray characters and spare bits; only the one spelling we wrote may pass.
  if (whole.toString("base64url") !== text || whole.length < IV_BYTES + TAG_BYTES) {
    throw new SecretError("An encrypted value was changed, or it belongs to another record.")
  }
  return whole
}

function same(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)]
  return left.length === right.length && timingSafeEqual(left, right)
}

const KEY_BYTES = 32

/** The key cannot be used as it is; the message says what to do. */
export class MasterKeyError extends Error {
  override readonly name = "MasterKeyError"
}

interface MasterKeyOptions {
  data_dir: string
  /** 32 bytes in base64; without it `<data_dir>/master.key`, made at the first start. */
  master_key: string | null
  /** False for a command that needs the key that is there. */
  make?: boolean
}

/**
 * The key of the settings, else that of `<data_dir>/master.key`, which is made when it is missing.
 * Throws when other users may read the file, or when it does not hold 32 bytes in base64.
 */
function masterKey(options: MasterKeyOptions): Buffer {
  if (options.master_key !== null) return decoded(options.master_key, "security.master_key")
  const path = join(options.data_dir, "master.key")
  try {
    return read(path)
  } catch (error) {
    if (codeOf(error) !== "ENOENT") throw error
  }
  if (options.make === false) {
    throw new MasterKeyError(
      `The file ${path} does not exist. Put the key of this instance there, or set security.master_key.`,
    )
  }
  make(options.data_dir, path)
  return read(path)
}

function read(path: string): Buffer {
  const mode = statSync(path).mode & 0o777
  if ((mode & 0o077) !== 0) {
    throw new MasterKeyError(
      `${path} can be read by other users (mode ${mode.toString(8)}). Run: chmod 600 ${path}`,
    )
  }
  return decoded(readFileSync(path, "utf8").trim(), path)
}

function decoded(text: string, where: string): Buffer {
  const key = Buffer.from(text, "base64")
  if (!/^[A-Za-z0-9+/]+=*$/.test(text) || key.length !== KEY_BYTES) {
    throw new MasterKeyError(`${where} must be ${KEY_BYTES} bytes in base64`)
  }
  return key
}

/**
 * Written and synced under another name, then linked: link refuses an existing name, so of two
 * processes that start at once one wins, and no crash leaves half a key behind.
 */
function make(data_dir: string, path: string): void {
  mkdirSync(data_dir, { recursive: true, mode: 0o700 })
  const draft = `${path}.${newId()}`
  const file = openSync(draft, "wx", 0o600)
  try {
    writeSync(file, `${randomBytes(KEY_BYTES).toString("base64")}\n`)
    fsyncSync(file)
    closeSync(file)
    linkSync(draft, path)
  } catch (error) {
    if (codeOf(error) !== "EEXIST") throw error
  } finally {
    unlinkSync(draft)
  }
  syncFolder(data_dir)
}

function syncFolder(folder: string): void {
  const handle = openSync(folder, "r")
  fsyncSync(handle)
  closeSync(handle)
}
