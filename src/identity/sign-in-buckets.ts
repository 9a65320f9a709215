import type { ThrottleBucket } from "../sign-in/throttle"

const QUARTER_HOUR = 900

/** Contract 00, section 7. */
export const BUCKETS = {
  sign_in: { name: "sign_in", size: 10, seconds: QUARTER_HOUR },
  sign_in_address: { name: "sign_in_address", size: 30, seconds: QUARTER_HOUR },
  sign_up: { name: "sign_up", size: 10, seconds: QUARTER_HOUR },
  sign_up_address: { name: "sign_up_address", size: 30, seconds: QUARTER_HOUR },
  /** A signed-in person proves their identity again. This bucket is separate, so strangers cannot fill it. */
  proof: { name: "proof", size: 10, seconds: QUARTER_HOUR },
  mfa: { name: "mfa", size: 10, seconds: QUARTER_HOUR },
  forgot: { name: "forgot", size: 3, seconds: 3600 },
  forgot_address: { name: "forgot_address", size: 30, seconds: QUARTER_HOUR },
} as const satisfies Record<string, ThrottleBucket>
