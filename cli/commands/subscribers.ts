import type { Components } from "../../src/client/components"
import { metadata } from "../lib/body-flags"
import { type Client, requireParams } from "../lib/client"
import type { Action } from "../lib/context"
import { wasThere } from "../lib/errors"
import type { OptionWords } from "../lib/field-flags"
import { IMPORT_OPTIONS } from "../lib/file-import"
import { recordMissing } from "../lib/missing"
import { confirm } from "../lib/prompts"
import { own, type Resource, row } from "../lib/resource"
import { later } from "../lib/run"
import { ago, type Columns, wide } from "../lib/table"
import { reachabilityRow } from "./preferences"
import { subscriberConsentRows } from "./subscriber-consents"

type Subscriber = Components["Subscriber"]

const columns: Columns<Subscriber> = {
  "EXTERNAL ID": wide(({ external_id }) => external_id, "last"),
  EMAIL: wide(({ email }) => email, "last"),
  PHONE: { cell: ({ phone }) => phone ?? "", spare: 1 },
  NAME: wide(({ name }) => name, "first"),
  STATUS: {
    cell: ({ status }) => status,
    paint: (text, { status }, paint) => (status === "active" ? text : paint.red(text)),
  },
  TAGS: { cell: ({ tags }) => tags.join(" "), flexible: "first", spare: 2 },
  AGE: ago(({ created_at }) => created_at),
}

const flags = {
  metadata,
  email: "email address",
  phone: "phone number, such as +4915112345678",
  name: "name of the person",
  avatar_url: "address of a picture",
  tags: "all tags of the subscriber; may be repeated",
} as const

/** Of a subscriber that is there: `none` empties a field. */
const changes = {
  ...flags,
  email: "email address; none removes it",
  phone: "phone number, such as +4915112345678; none removes it",
  name: "name of the person; none removes it",
  avatar_url: "address of a picture; none removes it",
  locale: "language as a BCP 47 tag; none removes it",
  timezone: "IANA time zone, such as Europe/Vienna; none removes it",
  tags: "all tags of the subscriber; may be repeated; none removes all",
} as const

const REALLY_NONE = "`subscribers import` takes a name or a tag that is really none."

const EXTERNAL: OptionWords = [
  "--external",
  "the name is an external id, although it looks like an id of the server",
]

interface NamingOptions {
  external?: boolean
}

/** Exit 3 where one of them was not there. */
const remove: Action<NamingOptions> = async (context, { external }, ...names) => {
  for (const subscriber_id of names) requireParams({ subscriber_id })
  const what = names.length === 1 ? `the subscriber ${names[0]}` : `${names.length} subscribers`
  await confirm(context, `This removes ${what}. It cannot be undone.`, "remove")
  const client = context.client()
  const not_found: string[] = []
  for (const name of names) {
    if (!(await wasThere(removal(client, name, external ?? false)))) not_found.push(name)
  }
  const removed = names.length - not_found.length
  const missing = (name: string) => `there is no subscriber ${name}`
  return await recordMissing(context, { removed, not_found }, `removed ${removed}`, missing)
}

const removal = (client: Client, name: string, is_external: boolean) =>
  is_external
    ? client.call("DELETE /v1/subscribers/external/{external_id}", {
        params: { external_id: name },
      })
    : client.call("DELETE /v1/subscribers/{subscriber_id}", { params: { subscriber_id: name } })

const rows = [
  row("list", "GET /v1/subscribers", {
    example: ["--search ann", "--tag beta --status active --limit 100"],
    flags: {
      search: "first letters of words in the external id, the email or the name",
      topic: "show only members of the topic with this key",
    },
    columns,
  }),
  row("create <external>", "POST /v1/subscribers", {
    about: "add a subscriber; exit 5 where the external id exists",
    word: "user-42",
    example: "--email ann@acme.test --name Ann",
    flags,
    done: ({ external_id, id }) => `added ${external_id}   ${id}`,
  }),
  row("upsert <external>", "PUT /v1/subscribers/external/{external_id}", {
    word: "user-42",
    example: ["--email ann@acme.test --tag beta", "--metadata plan=pro --timezone Europe/Vienna"],
    note: `Fields without a flag stay as they are. --metadata replaces all metadata.\n${REALLY_NONE}`,
    flags: { ...changes, external_id: false },
    done: ({ external_id, id }) => `saved ${external_id}   ${id}`,
  }),
  row("patch <subscriber>", "PATCH /v1/subscribers/{subscriber_id}", {
    about: "change a subscriber, named by its id or its external id",
    example: ["--status blocked", "--metadata plan=pro --new-external-id user-43"],
    note: `--metadata is added to the metadata that is there.\n${REALLY_NONE}`,
    flags: { ...changes, external_id: "new external id" },
    aliases: { external_id: "new-external-id" },
    done: ({ external_id }) => `changed ${external_id}`,
  }),
  reachabilityRow,
  ...subscriberConsentRows,
  row("get <subscriber>", "GET /v1/subscribers/{subscriber_id}", {
    about: "show a subscriber, named by its id or its external id",
    options: [EXTERNAL],
    instead: ({ external }) =>
      external === true && row("", "GET /v1/subscribers/external/{external_id}"),
  }),
  own("rm <subscriber...>", remove, {
    about: "remove subscribers with their preferences and memberships of topics",
    example: ["", "user-43 --yes"],
    note: "Messages and consents stay. Use `subscribers erase` where the person asks to be forgotten. Later it needs\nthe id of the server, which `subscribers get` shows before, and the audit log afterwards.",
    options: [EXTERNAL],
  }),
  own(
    "import <file>",
    later(async () => (await import("./subscribers-import")).importSubscribers),
    {
      about: "add or change the subscribers of a CSV or JSON file, 1,000 in one request",
      word: ["people.csv", "people.ndjson"],
      example: ["--map 'E-Mail=email' --map Plan=metadata.plan", "--dry-run"],
      note: "The first line of a CSV file names its columns. The same command continues an\nimport that was interrupted. The server accepts 10 requests a minute from each project.",
      options: [
        ["--map <column=field>", "field that a column fills; may be repeated", "several"],
        ["--mode <mode>", "what happens with those that exist: skip or upsert (default: upsert)"],
        ["--format <format>", "csv, json or ndjson (default: by the file itself)"],
        ...IMPORT_OPTIONS,
      ],
    },
  ),
]

export const subscriberResource: Resource = {
  noun: "subscribers",
  about: "manage the people that get your messages",
  example: ["subscribers list --search ann", "subscribers upsert user-42 --email ann@acme.test"],
  rows,
}
