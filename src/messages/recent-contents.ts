import { perStore } from "../store/cached"

/** Those of this store. */
export const recentOf = perStore(() => new RecentContents())

/** Characters: some thousand letters, more than are under way where delivery keeps up. */
const MOST = 4 * 1024 * 1024

/** Larger contents are not kept: sending them costs far more than reading them back. */
const MOST_OF_ONE = 64 * 1024

/**
 * Contents of messages that were just accepted. Most are delivered within the same second, and need
 * not be read back and parsed for it. The oldest give way; the database has all of them.
 */
export class RecentContents {
  readonly #kept = new Map<string, { content: unknown; size: number }>()
  #size = 0

  keep(message_id: string, content: unknown) {
    const size = sizeOf(content)
    if (size > MOST_OF_ONE) return
    this.#kept.set(message_id, { content, size })
    this.#size += size
    for (const [oldest] of this.#kept) {
      if (this.#size <= MOST) return
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

  /** Characters that are kept now. */
  get size(): number {
    return this.#size
  }
}

/** In characters, near enough. */
function sizeOf(content: unknown): number {
  if (typeof content === "string") return content.length
  if (typeof content !== "object" || content === null) return 8
  let size = 64
  for (const value of Object.values(content)) size += sizeOf(value)
  return size
}
