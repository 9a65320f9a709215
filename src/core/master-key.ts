import { randomBytes } from "node:crypto"
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

const KEY_BYTES = 32

/** The key cannot be used as it is; the message says what to do. */
export class MasterKeyError extends Error {
  override readonly name = "MasterKeyError"
}

export interface MasterKeyOptions {
  data_dir: string
  /** 32 bytes in base64; without it `<data_dir>/master.key`, made at the first start. */
  master_key: string | null
  /** False for a command that needs the key that is there. */
  make?: boolean
}

/**
 * The key of the settings, else of `<data_dir>/master.key`, which is made when there is none.
 * Throws when the file may be read by others than its owner, or does not hold 32 bytes of base64.
 */
export function masterKey(options: MasterKeyOptions): Buffer {
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
