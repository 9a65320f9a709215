import { id, int, key, ref, text, time } from "../store/columns"

/**
 * The columns that the tables of every kind of person have. Each kind has tables of its own, and adds columns where it
 * needs them. The console's people and the end users share no table.
 */

/** One sign-in: all refresh tokens that descend from it die with it. */
export const sessionColumns = () => ({
  id: id(),
  user_id: ref().notNull(),
  ip: text(),
  user_agent: text(),
  created_at: time().notNull(),
  last_used_at: time().notNull(),
  expires_at: time().notNull(),
  revoked_at: time(),
})

/** Used ones stay until they expire, so that a second use is noticed. */
export const refreshTokenColumns = () => ({
  token_hash: key(),
  session_id: ref().notNull(),
  created_at: time().notNull(),
  used_at: time(),
  /** Sealed: the token that took its place, for a request that was sent twice. */
  successor: text(),
  expires_at: time().notNull(),
})

/** A token that works once: of a mail, or of the redirect that follows it. */
export const linkColumns = () => ({
  token_hash: key(),
  used_at: time(),
  created_at: time().notNull(),
  expires_at: time().notNull(),
})

/** Six digits that were sent to somebody. */
export const codeColumns = () => ({
  id: id(),
  code_hash: text().notNull(),
  attempts: int().notNull(),
  used_at: time(),
  created_at: time().notNull(),
  expires_at: time().notNull(),
})

/** The first factor was right; the second one is awaited. */
export const challengeColumns = () => ({
  token_hash: key(),
  user_id: ref().notNull(),
  attempts: int().notNull(),
  used_at: time(),
  created_at: time().notNull(),
  expires_at: time().notNull(),
})

/** Each opens the second door once. */
export const backupCodeColumns = () => ({
  user_id: ref().notNull(),
  code_hash: text().notNull(),
  used_at: time(),
  created_at: time().notNull(),
})

/** The last few passwords of a user, the present one among them. */
export const passwordHistoryColumns = () => ({
  id: id(),
  user_id: ref().notNull(),
  password_hash: text().notNull(),
  created_at: time().notNull(),
})

/** Attempts at something that can be guessed. The subject is a MAC: it reveals no address or user. */
export const throttleColumns = () => ({
  subject: key(),
  used: int().notNull(),
  ends_at: time().notNull(),
})
