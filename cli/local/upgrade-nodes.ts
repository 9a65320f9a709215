import type { Settings } from "../../src/core/config"
import { monotonic } from "../../src/core/time"
import { servingNodes } from "../../src/operations/upgrade/serving-nodes"
import { exits, Failure } from "../lib/errors"
import { pause } from "../lib/time"

const LOOK_MILLISECONDS = 500
/** A node that was killed counts as serving for 20 s. */
const SILENT_MILLISECONDS = 21_000

/** How many nodes serve the database beside those of this folder. */
export async function otherNodes({ database_url }: Settings, own: number): Promise<number> {
  if (database_url === null) return 0
  return Math.max(0, (await servingNodes(database_url)) - own)
}

/**
 * Resolves when no other node serves the database; `own`: how many of this folder do. Throws Failure where
 * another one goes on: the tables would change under it, and what it accepts could be lost.
 */
export async function demandNodes(settings: Settings, own: number): Promise<void> {
  const deadline = monotonic() + SILENT_MILLISECONDS
  for (;;) {
    const others = await otherNodes(settings, own)
    if (others === 0) return
    if (monotonic() > deadline) throw otherNodesServe(others)
    await pause(LOOK_MILLISECONDS)
  }
}

/** `more`: what the new version needs. */
export function otherNodesServe(others: number, more = ""): Failure {
  const serve = others === 1 ? "other node serves" : "other nodes serve"
  return new Failure(exits.conflict, "other_nodes", `${others} ${serve} this database${more}.`, {
    hint: "stop the other nodes, upgrade this one, then put the new program on the others",
  })
}
