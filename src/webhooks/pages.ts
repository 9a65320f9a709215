import { monotonic } from "../core/time"
import { engine } from "../store/columns"
import { onChanged } from "../store/group-commit"
import type { Reader } from "../store/store"
import { onPlanned } from "./bell"
import { type OpenEndpoint, PAGE, withOpen } from "./walk"

const FRESH_MILLISECONDS = 25

/**
 * The endpoints with open work. Where one process holds the file, and they are few, they are not
 * read for every look: only after one of them changed, work was added, or a moment went by.
 */
export class Pages {
  #first: OpenEndpoint[] | undefined
  #read_at = 0
  #forgotten = 0

  /** Hears of what makes a page old, until the returned function is called. */
  listen(): () => void {
    const ends = [onPlanned(() => this.forget()), onChanged(["webhooks"], () => this.forget())]
    return () => {
      for (const end of ends) end()
    }
  }

  forget() {
    this.#forgotten += 1
    this.#first = undefined
  }

  /** Those behind `after`, by id. */
  async behind(db: Reader, after: string): Promise<OpenEndpoint[]> {
    const is_fresh = monotonic() - this.#read_at < FRESH_MILLISECONDS
    if (after === "" && this.#first && is_fresh) return this.#first
    const forgotten = this.#forgotten
    this.#read_at = monotonic()
    const page = await withOpen(db, after)
    const lasts = engine === "sqlite" && after === "" && page.length < PAGE
    this.#first = lasts && forgotten === this.#forgotten ? page : undefined
    return page
  }
}
