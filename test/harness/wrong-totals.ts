import { brokenIn } from "../../src/operations/invariants"
import type { Reader } from "../../src/store/store"

/** Totals of the deliveries of a project, and the bytes that they store, that differ from their rows. */
export async function wrongTotals(db: Reader, id: string): Promise<string[]> {
  const look = { db, pause: async () => {}, since: null, overdue_before: null }
  const found = await Array.fromAsync(brokenIn(look, { kind: "project", id }))
  return found.map(({ what }) => what).filter((what) => /deliveries (of|is)/.test(what))
}
