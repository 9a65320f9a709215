import type { Action } from "../lib/context"
import { type FileColumns, type FileRow, fileFormat, mappingOf, rowsIn } from "../lib/file-columns"
import { enterAtOnce, type ImportLine, type ImportOptions, importLines } from "../lib/file-import"
import { parseObject } from "../lib/json-texts"

interface UserImport extends ImportOptions {
  application?: string
  environment?: string
  hash?: string
  map?: string[]
  format?: string
}

/** The columns of a file of users, as other services and frameworks call them. */
const COLUMNS: FileColumns = {
  keys: ["email", "phone_number"],
  fields: {
    email: ["emailaddress", "mail"],
    phone_number: ["phone", "mobile"],
    name: ["fullname", "displayname"],
    avatar_url: ["avatar", "picture", "photourl"],
    locale: ["language"],
    email_verified: ["emailconfirmed", "verified"],
    phone_verified: ["phoneconfirmed"],
    password: [],
    password_hash: ["encryptedpassword", "hash"],
    metadata: ["usermetadata"],
    app_metadata: [],
  },
  more: /^(app_)?metadata\../,
  alone: ["email", "phone_number"],
}

/** The server takes no more in one request, because it hashes each plain password. */
const MOST_PLAIN = 200

/** Adds the users of a file, in chunks. Exit 8 where some lines are refused. */
export const importUsers: Action<UserImport> = async (context, options, path = "") => {
  const { application: application_id, environment, hash, map = [] } = options
  const format = fileFormat(path, options.format)
  const mapped = mappingOf(map, COLUMNS)
  const unread = new Set<string>()
  async function* lines(pieces: AsyncIterable<string>) {
    for await (const row of rowsIn(pieces, { ...COLUMNS, mapped, unread }, format))
      yield userLine(row)
  }
  const target = { application_id, environment, hash }
  return importLines(context, {
    ...{ path, options, noun: "users", name: "email", lines },
    settings: { format, mapped: [...mapped], ...target },
    counts: ["imported"],
    async enter(chunk, key, counts) {
      if (unread.size > 0)
        await context.output.note(
          `not read, because no field is called so: ${[...unread].join(", ")}`,
        )
      unread.clear()
      const refused = []
      for (const [at, some] of groupsOf(chunk).entries()) {
        const body = { ...target, users: some.map(({ fields }) => fields) }
        const bulk = { route: "POST /v1/auth/users/import", body, place: /users\.\d+\./g } as const
        refused.push(...(await enterAtOnce(context, bulk, some, `${key}-${at}`, counts)))
      }
      return refused
    },
    done: ({ imported }) => `${imported} added`,
  })
}

/** Lines that fit into one request. */
function groupsOf(chunk: ImportLine[]): ImportLine[][] {
  const groups: ImportLine[][] = []
  let plain = 0
  for (const line of chunk) {
    const has_password = line.fields.password !== undefined
    const last = groups.at(-1)
    if (last && !(has_password && plain === MOST_PLAIN)) last.push(line)
    else {
      groups.push([line])
      plain = 0
    }
    if (has_password) plain += 1
  }
  return groups
}

const TRUTH: Readonly<Record<string, boolean>> = {
  ...{ true: true, yes: true, t: true, "1": true },
  ...{ false: false, no: false, f: false, "0": false },
}

/** A user as the server takes them. An empty cell says nothing. */
function userLine({ line, length, values, refused: broken }: FileRow): ImportLine {
  const fields: Record<string, unknown> = {}
  let refused = broken
  for (const [field, value] of values) {
    const [group = "", key] = field.split(/\.(.*)/s)
    if (key !== undefined) fields[group] = { ...(fields[group] as object), [key]: value }
    else if (field.endsWith("metadata")) {
      const { object, refused: reason } =
        typeof value === "string" ? parseObject(value) : { object: value }
      if (object) fields[field] = { ...(fields[field] as object), ...object }
      refused ??= reason
    } else if (field.endsWith("_verified") && typeof value === "string") {
      fields[field] = TRUTH[value.toLowerCase()] ?? value
    } else fields[field] = value
  }
  if (typeof fields.phone_number === "string")
    fields.phone_number = fields.phone_number.replaceAll(/[\s().\u00a0/-]/g, "").replace(/^00/, "+")
  return { line, name: String(fields.email ?? fields.phone_number ?? ""), length, fields, refused }
}
