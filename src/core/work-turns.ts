import { FairQueue } from "../lib/fair-queue"
import { nextTurn } from "./time"

const waiting = new FairQueue<() => void>()
let is_running = false

/**
 * Resolves in a later turn of the event loop, and in each turn for one alone: so much work follows that
 * two such pieces in one turn would be felt by all others. Owners, which are projects, take turns.
 */
export function workTurn(owner: string): Promise<void> {
  return new Promise((resolve) => {
    waiting.add(owner, "", resolve)
    if (!is_running) void giveTurns()
  })
}

async function giveTurns() {
  is_running = true
  await nextTurn()
  for (let begin = waiting.next(); begin; begin = waiting.next()) {
    begin()
    await nextTurn()
  }
  is_running = false
}
