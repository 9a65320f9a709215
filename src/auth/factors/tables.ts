import { backupCodeColumns, challengeColumns } from "../../sign-in/person-columns"
import {
  bool,
  bytewiseText,
  id,
  index,
  int,
  json,
  primaryKey,
  ref,
  table,
  text,
  time,
  uniqueIndex,
} from "../../store/columns"
import { life } from "../../store/life"
import type { MfaMethod } from "../tables"

/** A second factor of a user, but for passkeys. It waits for its first code while `verified_at` is null. */
export const userFactors = table(
  "user_factors",
  {
    id: id(),
    project_id: ref().notNull(),
    user_id: ref().notNull(),
    method: text<Exclude<MfaMethod, "passkey">>().notNull(),
    /** Sealed; of `totp`. */
    secret: text(),
    /** Of `sms`. */
    phone_number: text(),
    /** The time step of the last code that was taken (RFC 6238, section 5.2). */
    last_step: int(),
    /** Hashes of the backup codes that become valid with it. */
    code_hashes: json<string[]>().notNull(),
    verified_at: time(),
    created_at: time().notNull(),
  },
  (factor) => [
    uniqueIndex("user_factors_by_method").on(factor.user_id, factor.method),
    index("user_factors_by_project").on(factor.project_id, factor.id),
  ],
)
life(userFactors, {
  owner: "project",
  ends: "with row",
  names: { user_id: "users" },
  sealed: {
    secret: {
      what: "second factors of end users",
      remedy: "`belfry users mfa reset ID` for users that ask for it",
      drop: "value",
    },
  },
})

export const userBackupCodes = table(
  "user_backup_codes",
  { ...backupCodeColumns(), project_id: ref().notNull() },
  (code) => [
    primaryKey({ columns: [code.user_id, code.code_hash] }),
    index("user_backup_codes_by_project").on(code.project_id, code.user_id),
  ],
)
life(userBackupCodes, { owner: "project", ends: "with row", names: { user_id: "users" } })

/** A sign-in that waits for its second factor. */
export const userChallenges = table(
  "user_challenges",
  {
    ...challengeColumns(),
    project_id: ref().notNull(),
    environment_id: ref().notNull(),
    /** How the first factor came. */
    provider: text().notNull(),
    amr: json<string[]>().notNull(),
    organization_id: ref(),
  },
  (challenge) => [
    index("user_challenges_by_user").on(challenge.user_id),
    index("user_challenges_by_expiry").on(challenge.expires_at),
    index("user_challenges_by_project").on(challenge.project_id, challenge.token_hash),
  ],
)
life(userChallenges, { owner: "project", ends: "after minutes", names: { user_id: "users" } })

/** WebAuthn Level 3. */
export const userPasskeys = table(
  "user_passkeys",
  {
    id: id(),
    project_id: ref().notNull(),
    environment_id: ref().notNull(),
    user_id: ref().notNull(),
    name: text().notNull(),
    /** In base64url, as are ids of credentials everywhere. */
    credential_id: bytewiseText().notNull(),
    /** COSE, in base64url. */
    public_key: text().notNull(),
    counter: int().notNull(),
    transports: json<string[]>().notNull(),
    backed_up: bool().notNull(),
    last_used_at: time(),
    created_at: time().notNull(),
  },
  (passkey) => [
    uniqueIndex("user_passkeys_by_credential").on(passkey.environment_id, passkey.credential_id),
    index("user_passkeys_by_user").on(passkey.user_id, passkey.id),
    index("user_passkeys_by_project").on(passkey.project_id, passkey.id),
  ],
)
life(userPasskeys, { owner: "project", ends: "with row", names: { user_id: "users" } })

/** What a browser signs with a passkey, once. */
export const passkeyChallenges = table(
  "passkey_challenges",
  {
    id: id(),
    project_id: ref().notNull(),
    environment_id: ref().notNull(),
    /** That registers; null for a sign-in, where the passkey names the user. */
    user_id: ref(),
    kind: text<"register" | "login">().notNull(),
    challenge: text().notNull(),
    name: text(),
    /** Of the sign-in that waits for its second factor. */
    challenge_hash: text(),
    used_at: time(),
    created_at: time().notNull(),
    expires_at: time().notNull(),
  },
  (challenge) => [
    index("passkey_challenges_by_user").on(challenge.user_id),
    index("passkey_challenges_by_expiry").on(challenge.expires_at),
    index("passkey_challenges_by_project").on(challenge.project_id, challenge.id),
  ],
)
life(passkeyChallenges, { owner: "project", ends: "after minutes" })
