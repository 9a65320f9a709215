import type { Timeouts } from "../../src/emails/smtp/session"
import type { Script } from "../fakes/smtp-sink"

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
