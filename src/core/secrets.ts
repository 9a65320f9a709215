import {
  createCipheriv,
  createDecipheriv,
  hkdfSync,
  randomBytes,
  timingSafeEqual,
} from "node:crypto"
import { existsSync, linkSync, mkdirSync, readdirSync, renameSync, rmSync, statSync } from "node:fs"
import { join } from "node:path"
import { codeOf } from "./faults"
import { claimFile, readSmallFile, requireFile, syncPath } from "./small-file"

const VERSION = "v1"
const IV_BYTES = 12
const TAG_BYTES = 16

export type Secrets = ReturnType<typeof openSecrets>

/** A sealed text that cannot be opened. The message never holds the text or the key. */
export class SecretError extends Error {
  override readonly name = "SecretError"
}

interface DerivedKey {
  master: Buffer
  key_id: string
  sealing: Buffer
}

const derivedFrom = (master: Buffer): DerivedKey => ({
  master,
  key_id: derive(master, "belfry key id").subarray(0, 4).toString("hex"),
  sealing: derive(master, "belfry seal"),
})

const masterKeyId = (master: Buffer): string => derivedFrom(master).key_id

export function openSecrets(options: MasterKeyOptions) {
  const first = derivedFrom(masterKey(options))
  const held = { used: first, macs: first, are_macs_own: true, purposes: new Map<string, Buffer>() }
  const lookUp = finder(options, first)
  return {
    /** Eight hex digits that name the master key without telling anything about it. */
    get key_id() {
      return held.used.key_id
    },
    /** AES-256-GCM; the context (`table:id:column`) must be given again to open it. */
    seal: (plain: string, context: string) => sealWith(held.used, plain, context),
    /** Throws SecretError for another key, another context or a changed byte. */
    open: (sealed: string, context: string) =>
      openWith(lookUp(keyIdOf(sealed) ?? "") ?? held.used, sealed, context),
    /** HMAC-SHA-256 with a separate key for each purpose, so that two uses cannot be confused. */
    mac: (purpose: string, text: string): Buffer => macWith(held, purpose, text),
    keys: keyRing(options, held, lookUp),
  }
}

type MacKeys = Pick<HeldKeys, "macs" | "purposes">

function macWith({ macs, purposes }: MacKeys, purpose: string, text: string): Buffer {
  const key = purposes.get(purpose) ?? derive(macs.master, `belfry mac ${purpose}`)
  purposes.set(purpose, key)
  return new Bun.CryptoHasher("sha256", key).update(text).digest()
}

type FindKey = (key_id: string) => DerivedKey | undefined

function finder({ data_dir, master_key }: MasterKeyOptions, first: DerivedKey): FindKey {
  const known = new Map([[first.key_id, first]])
  return (key_id) => {
    if (known.has(key_id)) return known.get(key_id)
    for (const master of otherKeys(data_dir, master_key !== null, `${OLD_FILE}-${key_id}`)) {
      const derived = derivedFrom(master)
      known.set(derived.key_id, derived)
    }
    return known.get(key_id)
  }
}

/** What is in use now. */
interface HeldKeys {
  used: DerivedKey
  macs: DerivedKey
  are_macs_own: boolean
  /** The keys of MACs, by their purpose. */
  purposes: Map<string, Buffer>
}

/** While a master key is replaced, values of both open. New ones are sealed with the one in use. */
const keyRing = ({ data_dir, master_key }: MasterKeyOptions, held: HeldKeys, lookUp: FindKey) => ({
  /** Seals with this key from now on. False where no file of the data folder has it. */
  use(key_id: string, { also_for_macs = held.are_macs_own } = {}) {
    const key = lookUp(key_id)
    if (!key) return false
    held.used = key
    if (also_for_macs) {
      held.are_macs_own = true
      held.macs = key
      held.purposes.clear()
    }
    return true
  },
  /**
   * The name of the key that shall be used next: of the one that an earlier call left in
   * `master.key.next`, of the given one (base64), or of a new one.
   */
  next: (given: string | null) => nextMasterKey(data_dir, given, held.used.key_id),
  /** The master key in use, in base64: to be sealed or kept, never to be shown. */
  current: () => held.used.master.toString("base64"),
  /** As `seal`, with another key than the one in use. Throws SecretError where it is not known. */
  sealWith(key_id: string, plain: string, context: string) {
    const key = lookUp(key_id)
    if (!key) throw new SecretError(`The master key ${key_id} is not known here.`)
    return sealWith(key, plain, context)
  },
  /** Whether `master.key.next` is there, with another key than the one in use. */
  hasNext() {
    const path = join(data_dir, NEXT_FILE)
    return existsSync(path) && masterKeyId(read(path)) !== held.used.key_id
  },
  /**
   * Gives the key in use its usual file, `master.key`; the one before becomes `master.key.old`, and
   * an older one `master.key.old-<its name>`. With a key of the settings, the file of the next one stays,
   * because only the operator can change the settings.
   */
  settle() {
    if (master_key === null) takeNextMasterKey(data_dir, held.used.key_id)
  },
  /** Makes MACs with this master key (base64) from now on, so that links in mail stay valid. */
  useForMacs(master_key: string) {
    held.macs = derivedFrom(decoded(master_key, "the key of links"))
    held.are_macs_own = false
    held.purposes.clear()
  },
  /** Names the master key that MACs are made with. */
  macKeyId: () => held.macs.key_id,
  /** Makes the MACs of mail that left under this name; undefined where no file of the data folder has its key. */
  macsOf(key_id: string): { mac(purpose: string, text: string): Buffer } | undefined {
    const macs = key_id === held.macs.key_id ? held.macs : lookUp(key_id)
    const keys = macs && { macs, purposes: new Map() }
    return keys && { mac: (purpose, text) => macWith(keys, purpose, text) }
  },
  /** The master key that MACs are made with, in base64: to be sealed, never to be shown. */
  forMacs: () => held.macs.master.toString("base64"),
})

function sealWith({ key_id, sealing }: DerivedKey, plain: string, context: string): string {
  const iv = randomBytes(IV_BYTES)
  const cipher = createCipheriv("aes-256-gcm", sealing, iv)
  cipher.setAAD(additional(key_id, context))
  const bytes = Buffer.concat([iv, cipher.update(plain, "utf8"), cipher.final()])
  const whole = Buffer.concat([bytes, cipher.getAuthTag()])
  return `${VERSION}.${key_id}.${whole.toString("base64url")}`
}

function openWith({ key_id, sealing }: DerivedKey, sealed: string, context: string): string {
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
}

/** The name of the key that a value was sealed with; undefined for a text that is not sealed. */
export const keyIdOf = (text: string): string | undefined =>
  /^v1\.([0-9a-f]{8})\.[A-Za-z0-9_-]+$/.exec(text)?.[1]

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

const FILE = "master.key"
/** The key that takes the place of the one in use, and the one whose place was taken. */
const [NEXT_FILE, OLD_FILE] = ["master.key.next", "master.key.old"]

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
  /** The name of the key of the database. Where `master.key` is missing, a file of a rotation may have it. */
  wanted?: string | undefined
}

/**
 * The key of the settings, else that of `<data_dir>/master.key`, which is made when it is missing.
 * Throws when other users may read the file, or when it does not hold 32 bytes in base64.
 */
function masterKey(options: MasterKeyOptions): Buffer {
  if (options.master_key !== null) return decoded(options.master_key, "security.master_key")
  const path = join(options.data_dir, FILE)
  try {
    return read(path)
  } catch (error) {
    if (codeOf(error) !== "ENOENT") throw error
  }
  const { data_dir, make, wanted } = options
  const rotated = otherKeys(data_dir, true).find((key) => masterKeyId(key) === wanted)
  if (rotated) return rotated
  if (make === false) {
    throw new MasterKeyError(
      `The file ${path} does not exist. Put the key of this instance there, or set security.master_key. ` +
        "If the key is lost, `belfry admin lost-key` lists the secrets that nobody can read any more.",
    )
  }
  makeKeyFile(options.data_dir, path)
  return read(path)
}

/** The keys beside the one in use, as far as there are any. */
function otherKeys(data_dir: string, is_set: boolean, ...older: string[]): Buffer[] {
  const names = [...(is_set ? [] : [FILE]), NEXT_FILE, OLD_FILE, ...older]
  return names.flatMap((name) => {
    try {
      return [read(join(data_dir, name))]
    } catch (error) {
      if (codeOf(error) === "ENOENT" || codeOf(error) === "ENOTDIR") return []
      throw error
    }
  })
}

function nextMasterKey(data_dir: string, given: string | null, used_id: string): string {
  const path = join(data_dir, NEXT_FILE)
  // Of a rotation that ended. Its key may not be in the settings yet: then this is the only file with it.
  if (existsSync(path) && masterKeyId(read(path)) === used_id) {
    keepOlderKey(data_dir)
    renameSync(path, join(data_dir, OLD_FILE))
  }
  if (given !== null) decoded(given, "The new master key")
  if (!existsSync(path)) makeKeyFile(data_dir, path, given ?? undefined)
  const next = read(path)
  if (given !== null && !next.equals(Buffer.from(given, "base64"))) {
    throw new MasterKeyError(
      `A rotation to another key has begun: ${path} has it. Finish that one first, without a new key.`,
    )
  }
  return masterKeyId(next)
}

/** The key of two rotations ago gets its own name: backups of its time need it. */
function keepOlderKey(data_dir: string): void {
  const old = join(data_dir, OLD_FILE)
  if (existsSync(old)) renameSync(old, `${old}-${masterKeyId(read(old))}`)
}

/** There is a `master.key` at every moment. It does nothing where no key, or another one, is next. */
function takeNextMasterKey(data_dir: string, key_id: string): void {
  const [path, next, old] = [FILE, NEXT_FILE, OLD_FILE].map((name) => join(data_dir, name))
  if (!path || !next || !old || !existsSync(next) || masterKeyId(read(next)) !== key_id) return
  if (existsSync(path) && masterKeyId(read(path)) !== key_id) {
    keepOlderKey(data_dir)
    rmSync(old, { force: true })
    linkSync(path, old)
    syncPath(data_dir)
  }
  renameSync(next, path)
  removeDrafts(data_dir)
  syncPath(data_dir)
}

/** Of a process that was killed while it made the next key. */
function removeDrafts(data_dir: string): void {
  const drafts = readdirSync(data_dir).filter((name) => name.startsWith(`${NEXT_FILE}.`))
  for (const name of drafts) rmSync(join(data_dir, name), { force: true })
}

const PUT_KEY =
  "Put the file with the master key of this instance there, or set security.master_key."

function read(path: string): Buffer {
  const mode = statSync(path).mode & 0o777
  requireFile(path, PUT_KEY)
  if ((mode & 0o077) !== 0) {
    throw new MasterKeyError(
      `${path} can be read by other users (mode ${mode.toString(8)}). Run: chmod 600 ${path}`,
    )
  }
  return decoded((readSmallFile(path, PUT_KEY) ?? "").trim(), path)
}

function decoded(text: string, where: string): Buffer {
  const key = Buffer.from(text, "base64")
  if (!/^[A-Za-z0-9+/]+=*$/.test(text) || key.length !== KEY_BYTES) {
    throw new MasterKeyError(`${where} must be ${KEY_BYTES} bytes in base64. ${PUT_KEY}`)
  }
  return key
}

/** The file that is there stays. */
export function makeKeyFile(
  data_dir: string,
  path: string,
  key = randomBytes(KEY_BYTES).toString("base64"),
): void {
  mkdirSync(data_dir, { recursive: true, mode: 0o700 })
  claimFile(path, `${key}\n`)
}
