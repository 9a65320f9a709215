import type { JobKind } from "../jobs/jobs"

/** Reads one mail that came in, for all of its recipients. */
export const inboundProcess: JobKind<{ ids: string[] }> = {
  name: "inbound.process",
  schedule: (attempt) =>
    attempt < MOST_ATTEMPTS ? Math.min(5 * attempt, LONGEST_WAIT) : undefined,
}

const MOST_ATTEMPTS = 200
const LONGEST_WAIT = 600
