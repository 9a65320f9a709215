import { subscriberOf } from "../lib/ip-ranges"
import type { CountedAttempt, Throttle, ThrottleBucket } from "../sign-in/throttle"
import type { Tx } from "../store/store"
import { type EndUserRow, emailKeyOf } from "./end-users"
import type { AuthEnvironment } from "./environments"

const HALF_MINUTE = 30
const QUARTER_HOUR = 900
const HOUR = 3600
const DAY = 86_400

const sends = { code: "otp_send_rate_limit_exceeded" } as const

/** Contract 00, section 7. Each environment counts for itself; those of a network count by its address. */
const BUCKETS = {
  login: { name: "user_login", size: 10, seconds: QUARTER_HOUR },
  login_network: { name: "user_login_network", size: 30, seconds: QUARTER_HOUR },
  register: { name: "user_register", size: 10, seconds: QUARTER_HOUR },
  register_network: { name: "user_register_network", size: 30, seconds: QUARTER_HOUR },
  forgot: { name: "user_forgot", size: 3, seconds: HOUR },
  forgot_network: { name: "user_forgot_network", size: 30, seconds: QUARTER_HOUR },
  /** A signed-in user proves it again. Strangers cannot fill this one. */
  proof: { name: "user_proof", size: 10, seconds: QUARTER_HOUR },
  send_pause: { name: "user_send_pause", size: 1, seconds: HALF_MINUTE, ...sends },
  send: { name: "user_send", size: 5, seconds: QUARTER_HOUR, ...sends },
  send_day: { name: "user_send_day", size: 10, seconds: DAY, ...sends },
  send_network: { name: "user_send_network", size: 20, seconds: HOUR, ...sends },
  /** Mails that invite one address, and those that one user asks for. */
  invited: { name: "user_invited", size: 5, seconds: DAY, code: "rate_limit_exceeded" },
  inviter: { name: "user_inviter", size: 100, seconds: DAY, code: "rate_limit_exceeded" },
  check: { name: "user_check", size: 15, seconds: HOUR, code: "otp_verify_rate_limit_exceeded" },
} as const satisfies Record<string, ThrottleBucket>

/** How long a client waits before it asks for another code. */
export const RESEND_SECONDS = BUCKETS.send_pause.seconds

/** An address in the form in which addresses compare, a number, or the id of a user. */
type Identifier = string

interface GuessParts {
  throttle: Throttle
}

/** The origin of a try: the identifier that it names, and its address. */
interface Attempt {
  identifier: Identifier
  ip: string
}

const of = (
  bucket: ThrottleBucket,
  environment: AuthEnvironment,
  subject: string,
): CountedAttempt => [bucket, `${environment.id} ${subject}`]

/**
 * Counts the try of a password before it is judged. Throws 429 `login_rate_limit_exceeded`: then the identifier
 * takes no password, whether it has a user or not, until the window of its first try ends.
 */
export const countLogin = (
  { throttle }: GuessParts,
  environment: AuthEnvironment,
  { identifier, ip }: Attempt,
): Promise<void> =>
  throttle.consume(
    of(BUCKETS.login_network, environment, subscriberOf(ip)),
    of(BUCKETS.login, environment, identifier),
  )

/** The password was right: the identifier begins anew. Only failures count for a network, so this try does not. */
export async function forgiveLogin(
  tx: Tx,
  { throttle }: GuessParts,
  environment: AuthEnvironment,
  { identifier, ip }: Attempt,
): Promise<void> {
  // In the order in which `countLogin` takes the rows: two that wait for each other would have to begin again.
  await throttle.refund(tx, of(BUCKETS.login_network, environment, subscriberOf(ip)))
  await throttle.reset(tx, of(BUCKETS.login, environment, identifier))
}

/**
 * Counts the try of a way in that names no identifier before it is judged. Throws 429 `login_rate_limit_exceeded`:
 * too many tries of the network failed.
 */
export const countWayIn = (
  { throttle }: GuessParts,
  environment: AuthEnvironment,
  ip: string,
): Promise<void> => throttle.consume(of(BUCKETS.login_network, environment, subscriberOf(ip)))

/** It was right. */
export const forgiveWayIn = (
  tx: Tx,
  { throttle }: GuessParts,
  environment: AuthEnvironment,
  ip: string,
): Promise<void> => throttle.refund(tx, of(BUCKETS.login_network, environment, subscriberOf(ip)))

/** Whether the user's address takes no password now. */
export const isLockedOut = (
  { throttle }: GuessParts,
  environment: AuthEnvironment,
  { email }: Pick<EndUserRow, "email">,
): Promise<boolean> => throttle.isFull(of(BUCKETS.login, environment, emailKeyOf(email ?? "")))

/** The user's address takes passwords again. */
export const liftLockout = (
  tx: Tx,
  { throttle }: GuessParts,
  environment: AuthEnvironment,
  { email }: Pick<EndUserRow, "email">,
): Promise<void> => throttle.reset(tx, of(BUCKETS.login, environment, emailKeyOf(email ?? "")))

/** Throws 429 `login_rate_limit_exceeded`. */
export const countRegistration = (
  { throttle }: GuessParts,
  environment: AuthEnvironment,
  { identifier, ip }: Attempt,
): Promise<void> =>
  throttle.consume(
    of(BUCKETS.register_network, environment, subscriberOf(ip)),
    of(BUCKETS.register, environment, identifier),
  )

/** Throws 429 `login_rate_limit_exceeded`. */
export const countForgot = (
  { throttle }: GuessParts,
  environment: AuthEnvironment,
  { identifier, ip }: Attempt,
): Promise<void> =>
  throttle.consume(
    of(BUCKETS.forgot_network, environment, subscriberOf(ip)),
    of(BUCKETS.forgot, environment, identifier),
  )

/**
 * Before a code or a link is sent, whatever it is for. Throws 429 `otp_send_rate_limit_exceeded`. Codes of second factors
 * say their purpose, so that a sign-in need not wait for the mail of the enrolment before it.
 */
export const countSend = (
  { throttle }: GuessParts,
  environment: AuthEnvironment,
  { identifier, ip, purpose = "" }: Attempt & { purpose?: string },
): Promise<void> =>
  throttle.consume(
    of(BUCKETS.send_network, environment, subscriberOf(ip)),
    of(BUCKETS.send_day, environment, identifier),
    of(BUCKETS.send, environment, identifier),
    of(BUCKETS.send_pause, environment, identifier + purpose),
  )

/**
 * Before an invitation to an organization is mailed; without `user_id` for somebody of the project. Throws 429
 * `rate_limit_exceeded`.
 */
export const countInvitation = (
  { throttle }: GuessParts,
  environment: AuthEnvironment,
  { identifier, user_id }: { identifier: Identifier; user_id: string | undefined },
): Promise<void> =>
  throttle.consume(
    ...(user_id === undefined ? [] : [of(BUCKETS.inviter, environment, user_id)]),
    of(BUCKETS.invited, environment, identifier),
  )

/**
 * Before a code is looked at, whatever it is for: a new code gives nobody new tries. Throws 429
 * `otp_verify_rate_limit_exceeded`.
 */
export const countCheck = (
  { throttle }: GuessParts,
  environment: AuthEnvironment,
  identifier: Identifier,
): Promise<void> => throttle.consume(of(BUCKETS.check, environment, identifier))

/** It was right: nobody is kept out for being right often. */
export const forgiveCheck = (
  tx: Tx,
  { throttle }: GuessParts,
  environment: AuthEnvironment,
  identifier: Identifier,
): Promise<void> => throttle.refund(tx, of(BUCKETS.check, environment, identifier))

/** Before a signed-in user's own password is looked at. Throws 429 `login_rate_limit_exceeded`. */
export const countProof = (
  { throttle }: GuessParts,
  environment: AuthEnvironment,
  { id }: Pick<EndUserRow, "id">,
): Promise<void> => throttle.consume(of(BUCKETS.proof, environment, id))

export const forgiveProof = (
  tx: Tx,
  { throttle }: GuessParts,
  environment: AuthEnvironment,
  { id }: Pick<EndUserRow, "id">,
): Promise<void> => throttle.reset(tx, of(BUCKETS.proof, environment, id))
