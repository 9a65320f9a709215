import { durationFrom, flag, key, percent, whole } from "./config-kinds"

const HOUR = 3_600_000
const MOST = 1_000_000_000

/** When bad rates slow an account down, and when they stop it. */
export const reputationKeys = {
  "reputation.enforced": key(
    flag,
    true,
    "Whether bad rates throttle and freeze accounts, and hold tags and templates. With false, rates are only shown.",
  ),
  "reputation.window": key(
    durationFrom("1h", "28d"),
    7 * 24 * HOUR,
    "Time over which bounce and complaint rates are computed, in whole hours.",
  ),
  "reputation.throttle.min_sent": key(
    whole(1, MOST),
    200,
    "Minimum number of sent emails in the window before rates can throttle an account.",
  ),
  "reputation.throttle.bounce_percent": key(
    percent,
    5,
    "Share of permanent bounces, in percent, at which an account is throttled.",
  ),
  "reputation.throttle.complaint_percent": key(
    percent,
    0.1,
    "Share of complaints, in percent, at which an account is throttled.",
  ),
  "reputation.throttle.hour_sent": key(
    whole(1, MOST),
    1000,
    "Number of emails in one hour above which a sudden rise can throttle an account.",
  ),
  "reputation.throttle.hour_factor": key(
    whole(1, MOST),
    5,
    "How many times its usual hour an account must send in one hour to be throttled.",
  ),
  "reputation.throttle.least_percent": key(
    percent,
    25,
    "Share of sends, in percent, that is rejected at the threshold of throttling.",
  ),
  "reputation.throttle.most_percent": key(
    percent,
    90,
    "Share of sends, in percent, that is rejected at the threshold of freezing.",
  ),
  "reputation.recovery.after": key(
    durationFrom("1m", "28d"),
    6 * HOUR,
    "How long all rates must stay low before a throttled account becomes active again.",
  ),
  "reputation.recovery.percent": key(
    percent,
    80,
    "Share of a threshold, in percent, below which a rate is low. From this share on, owners are warned.",
  ),
  "reputation.freeze.min_sent": key(
    whole(1, MOST),
    500,
    "Minimum number of sent emails in the window before rates can freeze an account.",
  ),
  "reputation.freeze.bounce_percent": key(
    percent,
    10,
    "Share of permanent bounces, in percent, at which an account is frozen.",
  ),
  "reputation.freeze.complaint_percent": key(
    percent,
    0.5,
    "Share of complaints, in percent, at which an account is frozen.",
  ),
  "reputation.hold.min_sent": key(
    whole(1, MOST),
    50,
    "Minimum number of sent emails with a tag or template before complaints can hold it.",
  ),
  "reputation.hold.complaint_percent": key(
    percent,
    0.5,
    "Share of complaints, in percent, at which a tag or template is held.",
  ),
} as const
