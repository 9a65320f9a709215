import { dlopen, type Pointer, ptr } from "bun:ffi"
import type { KeyObject } from "node:crypto"
import { existsSync } from "node:fs"
import { builtIn, type RsaSign } from "../lib/dkim"

/** Where systems keep their libraries. By its name alone one in the working directory would be found, too. */
const PLACES = [
  "/usr/lib/x86_64-linux-gnu",
  "/usr/lib/aarch64-linux-gnu",
  "/lib/x86_64-linux-gnu",
  "/lib/aarch64-linux-gnu",
  "/usr/lib64",
  "/lib64",
  "/usr/lib",
  "/lib",
]

/** OpenSSL 3.0.4 writes beyond its buffers with 2048 bits on processors with AVX-512 (CVE-2022-2274). */
const CORRUPTING = 0x30000040n

const systemLibrary = () => PLACES.map((place) => `${place}/libcrypto.so.3`).find(existsSync)

/**
 * The system's OpenSSL 3, or undefined where it is missing. It signs two and a half times as fast
 * as the runtime, and signing is the largest part of the cost of a signed message. A key is loaded
 * at its second use, because loading costs more than one signature. Both sign that second time, and
 * the bytes must be equal, as the scheme is deterministic. If they differ, the runtime signs with
 * this key from then on.
 */
export function openssl(file = systemLibrary()): RsaSign | undefined {
  const library = file === undefined ? undefined : load(file)
  if (!library || library.OpenSSL_version_num() === CORRUPTING) return undefined
  const keys = new WeakMap<KeyObject, NativeKey | "met" | "refused">()
  return (data, key) => {
    const known = keys.get(key)
    if (known instanceof NativeKey) return known.sign(data) ?? builtIn(data, key)
    const own = builtIn(data, key)
    if (known === undefined) keys.set(key, "met")
    else if (known === "met") keys.set(key, proven(library, key, { data, own }) ?? "refused")
    return own
  }
}

let chosen: RsaSign | undefined

/** By the faster of the two that this machine has. */
export const signRsa: RsaSign = (data, key) => {
  chosen ??= openssl() ?? builtIn
  return chosen(data, key)
}

/** Of a key of 16,384 bits, the largest that OpenSSL signs with. */
const MAX_SIGNATURE = 2048

type Library = NonNullable<ReturnType<typeof load>>

/** Found only where it was made for: elsewhere the same name may mean another interface. */
function load(file: string) {
  if (process.platform !== "linux") return undefined
  try {
    return dlopen(file, {
      d2i_AutoPrivateKey: { args: ["ptr", "ptr", "i64"], returns: "ptr" },
      EVP_PKEY_free: { args: ["ptr"], returns: "void" },
      EVP_MD_CTX_new: { args: [], returns: "ptr" },
      EVP_MD_CTX_free: { args: ["ptr"], returns: "void" },
      EVP_sha256: { args: [], returns: "ptr" },
      EVP_DigestSignInit: { args: ["ptr", "ptr", "ptr", "ptr", "ptr"], returns: "i32" },
      EVP_DigestSign: { args: ["ptr", "ptr", "ptr", "ptr", "u64"], returns: "i32" },
      ERR_clear_error: { args: [], returns: "void" },
      OpenSSL_version_num: { args: [], returns: "u64" },
    }).symbols
  } catch {
    return undefined
  }
}

function proven(
  library: Library,
  key: KeyObject,
  { data, own }: { data: Uint8Array; own: Buffer },
): NativeKey | undefined {
  try {
    const native = NativeKey.open(library, key)
    return native?.sign(data)?.equals(own) ? native : undefined
  } catch {
    return undefined // of a kind that has no such form
  }
}

/** A key in the library's memory. It is freed when the object is collected. */
class NativeKey {
  static readonly #left = new FinalizationRegistry<() => void>((free) => free())
  readonly #library: Library
  readonly #key: Pointer
  readonly #signature = Buffer.alloc(MAX_SIGNATURE)
  readonly #length = new BigUint64Array(1)

  private constructor(library: Library, key: Pointer) {
    this.#library = library
    this.#key = key
    NativeKey.#left.register(this, () => library.EVP_PKEY_free(key))
  }

  static open(library: Library, key: KeyObject): NativeKey | undefined {
    const der = key.export({ type: "pkcs8", format: "der" })
    const place = new BigUint64Array([BigInt(ptr(der))])
    try {
      const opened = pointerOf(library.d2i_AutoPrivateKey(null, place, der.length))
      return opened === null ? undefined : new NativeKey(library, opened)
    } finally {
      der.fill(0)
      library.ERR_clear_error()
    }
  }

  /** Undefined where the library refuses. */
  sign(data: Uint8Array): Buffer | undefined {
    const { EVP_MD_CTX_new, EVP_MD_CTX_free, ERR_clear_error } = this.#library
    const context = pointerOf(EVP_MD_CTX_new())
    if (context === null) return undefined
    try {
      return this.#signed(context, data)
    } finally {
      EVP_MD_CTX_free(context)
      ERR_clear_error()
    }
  }

  #signed(context: Pointer, data: Uint8Array): Buffer | undefined {
    const { EVP_sha256, EVP_DigestSignInit, EVP_DigestSign } = this.#library
    this.#length[0] = BigInt(MAX_SIGNATURE)
    if (EVP_DigestSignInit(context, null, EVP_sha256(), null, this.#key) !== 1) return undefined
    const [signature, length] = [this.#signature, this.#length]
    if (EVP_DigestSign(context, signature, length, data, data.length) !== 1) return undefined
    return Buffer.from(signature.subarray(0, Number(length[0])))
  }
}

const pointerOf = (given: Pointer | bigint | null): Pointer | null =>
  given === null ? null : (Number(given) as Pointer)
