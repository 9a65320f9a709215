import { monotonic } from "../core/time"
import { perStore } from "../store/cached"

/** Those of this store. */
export const recentOf = perStore(() => new RecentContents())

/** Bytes: some thousand letters, more than are under way where delivery keeps up. */
const MOST = 4 * 1024 * 1024

/** Larger contents are not kept: sending them costs far more than reading them back. */
const MOST_OF_ONE = 64 * 1024

/** Contents that are older give way. The younger ones of a longer queue are delivered before the new ones. */
const RECENT_MILLISECONDS = 10_000

interface KeptContent {
  content: unknown
  size: number
  at: number
}

/**
 * Contents of messages that were just accepted. Most are delivered within the same second, and need
 * not be read back and parsed for it. Where there are too many, the next deliveries need the first ones; the
 * database has all of them.
 */
export class RecentContents {
  readonly #kept = new Map<string, KeptContent>()
  #size = 0

  /** `at`: when it was accepted, by `monotonic`. `size`: where it is known. */
  keep(message_id: string, content: unknown, { at = monotonic(), size = sizeOf(content) } = {}) {
    if (size > MOST_OF_ONE) return
    if (this.#size + size > MOST) this.#forgetOld(at - RECENT_MILLISECONDS)
    if (this.#size + size > MOST) return
    this.#kept.set(message_id, { content, size, at })
    this.#size += size
  }

  #forgetOld(before: number) {
    for (const [oldest, { at }] of this.#kept) {
      if (at >= before) return
      this.remove(oldest)
    }
  }

  /** Once: a second attempt, much later, reads the database. */
  remove(message_id: string): unknown {
    const found = this.#kept.get(message_id)
    if (!found) return undefined
    this.#kept.delete(message_id)
    this.#size -= found.size
    return found.content
  }

  /** Bytes that are kept now. */
  get size(): number {
    return this.#size
  }
}

/** What a text takes beside its characters, an object beside its fields, and any other value. */
const TEXT_BYTES = 48
const OBJECT_BYTES = 128
const VALUE_BYTES = 8

/** In bytes, near enough: most of a short content is not its characters. */
export function sizeOf(content: unknown): number {
  if (typeof content === "string") return TEXT_BYTES + Buffer.byteLength(content)
  if (typeof content !== "object" || content === null) return VALUE_BYTES
  let size = OBJECT_BYTES
  for (const name in content) size += sizeOf(content[name as keyof typeof content])
  return size
}
