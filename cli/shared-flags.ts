/** Flags that mean the same in every command that has them: name and help, written once. */

export const EVENT = "--event <type>"
export const ONLY_EVENT = "event type, or a group such as email.*; may be repeated"
export const SINCE = [
  "--since <when>",
  "start, as an ISO time or a span before now (10m, 2h, 7d)",
] as const
export const UNTIL = [
  "--until <when>",
  "end, as an ISO time or a span before now (10m, 2h, 7d)",
] as const
export const AFTER = ["--after <id>", "start after the event with this id"] as const
export const LIMIT = ["--limit <number>", "maximum number of rows (default: 25)"] as const
export const PERIOD = ["--period <YYYY-MM>", "month (default: the current month)"] as const

export const IDEMPOTENCY_KEY = [
  "--idempotency-key <key>",
  "a repeated call with this key has no second effect",
] as const
export const HEADER = ["--header <header>", "extra header `Name: value`; may be repeated"] as const
export const METADATA = [
  "--metadata <pair>",
  "extra data, k=v or a JSON object; may be repeated",
] as const

export const DATA_DIR = [
  "--data-dir <dir>",
  "folder of the database, the files and the master key",
] as const
export const SET = ["--set <key=value>", "value of any setting; may be repeated"] as const

export const YOUR_EMAIL = ["--email <address>", "your email address"] as const
export const YOUR_NAME = ["--name <name>", "your name"] as const
export const PASSWORD_STDIN = ["--password-stdin", "read the password from stdin"] as const
export const NEW_PASSWORD_STDIN = ["--password-stdin", "read the new password from stdin"] as const
export const ACCOUNT_NAME = [
  "--account-name <name>",
  "name of the account (default: Main)",
] as const
export const PROJECT_NAME = [
  "--project-name <name>",
  "name of the first project (default: Default)",
] as const
export const SLUG = ["--slug <slug>", "short name for URLs: a-z, 0-9 and hyphens"] as const
