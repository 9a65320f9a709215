import type { Timeouts } from "../../src/emails/smtp/session"
import type { Script } from "../fakes/smtp-sink"

const MINUTE_MS = 60_000

/**
 * How long a test waits for what will never come: the limit of every wait that should end. What comes late on a
 * slow machine comes all the same, so nothing that a test proves is in this time.
 */
export const NEVER_MS = 3 * MINUTE_MS

/** The longest that a test may take, and what has more waits because it starts processes. */
export const TEST_MS = { inside: 5 * MINUTE_MS, on_binary: 10 * MINUTE_MS }

/** For servers that answer: no busy machine comes near to these. */
export const PATIENT: Timeouts = {
  connect: 20_000,
  greeting: 20_000,
  reply: 20_000,
  accepted: 20_000,
}

/** For servers that go silent after the connect, where the wait itself is what is tested. */
export const IMPATIENT: Timeouts = { connect: 20_000, greeting: 100, reply: 100, accepted: 100 }

/** Short only where the script goes silent, in whole or in the middle of a reply. */
export const waitsFor = (script: Script): Timeouts =>
  Object.values(script).some((step) => step === "stall" || /^\d{3}-.*$/.test(String(step)))
    ? IMPATIENT
    : PATIENT
