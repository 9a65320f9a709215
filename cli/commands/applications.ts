import type { Components } from "../../src/client/components"
import { fieldsOf } from "../lib/client"
import type { Action } from "../lib/context"
import { flag, type OptionWords, type PlainOptions } from "../lib/field-flags"
import { secretOrFile } from "../lib/input"
import { confirm } from "../lib/prompts"
import { deletes, own, type PlainFlags, type Resource, row } from "../lib/resource"
import { ago, type Columns, count, idColumn, wide } from "../lib/table"
import { settingLines, settingsIn } from "./usage"

type Application = Components["Application"]

const usersOf = ({ environments }: Application, name: string) =>
  environments.find((one) => one.name === name)?.users ?? 0

const columns: Columns<Application> = {
  ID: idColumn("application"),
  NAME: wide(({ name }) => name),
  SLUG: "slug",
  TYPE: "type",
  LIVE: count((one) => usersOf(one, "live")),
  TEST: count((one) => usersOf(one, "test")),
  AGE: ago(({ created_at }) => created_at),
}

const fields: PlainFlags = {
  name: "name of the application",
  slug: "short name: a-z, 0-9 and hyphens (default: made of the name)",
  type: "type: web, native or game (default: web)",
  session_duration_minutes: "minutes that an access token lasts: 1 to 1440 (default: 60)",
  refresh_token_duration_days: "days after which an idle session ends: 1 to 365 (default: 30)",
  allowed_origins: "origin of pages that may sign users in; may be repeated",
  redirect_urls: "URL that links and sign-ins may lead to; may be repeated",
}

const aliases = {
  type: "type",
  session_duration_minutes: "session-minutes",
  refresh_token_duration_days: "refresh-days",
  allowed_origins: "origin",
  redirect_urls: "redirect-url",
}

/** A secret is shown this once, with --quiet too. */
const shown = ({ secret_key }: { secret_key: string }) =>
  `\n  ${secret_key}\n\nThe secret cannot be shown again. It is for servers alone.`

const applicationRows = [
  row("create", "POST /v1/auth/applications", {
    about: "create an application and print its secret once; --quiet prints only the id",
    example: "--name Shop --redirect-url https://shop.example.com/signed-in",
    flags: fields,
    aliases,
    done: ({ name, id }) => `created the application ${name} ${id}`,
    shown: ({ public_keys: { live, test }, secret_key }) =>
      `\n  live  ${live}\n  test  ${test}\n${shown({ secret_key })}`,
    next: ({ id }) => `applications environments get ${id} live`,
  }),
  row("list", "GET /v1/auth/applications", { columns }),
  row("get <id>", "GET /v1/auth/applications/{application_id}"),
  row("update <id>", "PATCH /v1/auth/applications/{application_id}", {
    about: "change an application; fields without a flag stay",
    example: "--session-minutes 30",
    flags: { ...fields, logo_url: "https:// URL of the logo; none removes it" },
    aliases,
  }),
  row("rm <id>", "DELETE /v1/auth/applications/{application_id}", {
    about: "delete an application with its users, organizations, keys and sessions, for good",
    example: "--yes",
    flags: { confirm: false },
    confirm: async (context, [application_id = ""], client) => {
      const path = "GET /v1/auth/applications/{application_id}"
      const { data } = await client.call(path, { params: { application_id } })
      const users = usersOf(data, "live") + usersOf(data, "test")
      await confirm(context, `${users} users of ${data.name} will be deleted for good.`, data.slug)
      return { confirm: data.slug }
    },
    done: ({ id }) => `deleted ${id}`,
  }),
  row("mails", "GET /v1/auth/email-templates", {
    about: "list the default texts of the mails to users, with their variables",
    columns: {
      TYPE: "type",
      SUBJECT: wide(({ subject }) => subject),
      VARIABLES: ({ variables }) => variables.map(({ key }) => key).join(" "),
    },
  }),
  row("rotate-secret <id>", "POST /v1/auth/applications/{application_id}/rotate-secret", {
    about: "create a new secret; the old one works for some more hours",
    example: "--overlap 2",
    flags: { overlap_hours: "hours in which both secrets work: 0 to 72 (default: 24)" },
    done: ({ previous_expires_at }) => `the old secret works until ${previous_expires_at}`,
    shown,
    brief: ({ secret_key }) => secret_key,
  }),
]

const PATCH = "PATCH /v1/auth/applications/{application_id}/environments/{environment}"

const setEnvironment: Action<object> = async (
  context,
  _,
  application_id,
  environment,
  ...words
) => {
  const params = { application_id: application_id ?? "", environment: environment as "live" }
  context.output.promises(fieldsOf(PATCH))
  const { data } = await context.call(PATCH, { params, body: settingsIn(words) })
  await context.output.record(data, () => settingLines(data, context.paint))
}

const environmentRows = [
  row("list <application>", "GET /v1/auth/applications/{application_id}/environments", {
    about: "list the environments of an application, oldest first",
    columns: {
      NAME: "name",
      STATUS: "status",
      MFA: ({ mfa }) => mfa.policy,
      METHODS: wide(({ methods }) =>
        Object.entries(methods)
          .flatMap(([name, is_on]) => (is_on ? [name] : []))
          .join(" "),
      ),
    },
  }),
  row(
    "get <application> <environment>",
    "GET /v1/auth/applications/{application_id}/environments/{environment}",
    { shown: settingLines },
  ),
  own("set <application> <environment> <name=value...>", setEnvironment, {
    about: "change settings of an environment; null restores the default",
    example: ["", "mfa.policy=required"],
  }),
]

const KEY_COLUMNS: Columns<Components["ApplicationKey"]> = {
  ID: "id",
  NAME: wide(({ name }) => name),
  ENVIRONMENT: ({ environment }) => environment ?? "none",
  KEY: "key",
  USED: ago(({ last_used_at }) => last_used_at, "never"),
  AGE: ago(({ created_at }) => created_at),
}

const keyRows = [
  row("list <application>", "GET /v1/auth/applications/{application_id}/keys", {
    columns: KEY_COLUMNS,
  }),
  row("create <application>", "POST /v1/auth/applications/{application_id}/keys", {
    about: "create a public key of an environment, or with --legacy on one without",
    example: "--environment live --name Website",
    flags: { name: "name of the key", environment: "environment: live or test" },
    done: ({ id, key }) => `created the key ${id}\n\n  ${key}`,
    brief: ({ key }) => key,
  }),
  row("rm <application> <key>", "DELETE /v1/auth/applications/{application_id}/keys/{key_id}", {
    flags: { force: "on deletes the last key of an environment, too" },
    ...deletes((_, key) => `Apps with the key ${key} will get no answers.`),
    done: ({ id }) => `deleted ${id}`,
  }),
]

const GAMING = "/v1/auth/applications/{application_id}/gaming-providers"

export const environmentFlag = "environment: live or test (default: live)"

/** A provider that is set up lets people in, unless its command says otherwise. */
export const disabling = {
  options: [["--disabled", "keep the settings, and let nobody in"]] as OptionWords[],
  input: ({ disabled }: PlainOptions) => ({ enabled: disabled !== true }),
}

const gamingRows = [
  row("list <application>", `GET ${GAMING}`, {
    about: "list the gaming platforms of an application, with the end of their secrets",
    columns: {
      PLATFORM: "provider",
      ENVIRONMENT: "environment",
      ENABLED: ({ enabled }) => (enabled ? "yes" : "no"),
      FOR: wide(({ bundle_ids, client_id }) => client_id ?? bundle_ids.join(" ")),
      CHANGED: ago(({ updated_at }) => updated_at),
    },
  }),
  row("set <application> <platform>", `PUT ${GAMING}/{provider}`, {
    about: "set up game-center or play-games; without --client-secret the stored one is kept",
    example: "--bundle-id com.example.game --team-id DEF123GHIJ",
    note: "A secret that begins with @ is a file: --client-secret @secret.txt; @- is stdin.",
    ...disabling,
    flags: {
      enabled: false,
      environment: environmentFlag,
      bundle_ids: "of game-center: bundle id of a game; may be repeated",
      team_id: "of game-center: id of the team in the developer account",
      client_id: "of play-games: id of the game server's OAuth client",
      client_secret: flag(
        ["--client-secret <secret>", "of play-games: its secret, or @file"],
        secretOrFile,
      ),
    },
    aliases: { bundle_ids: "bundle-id" },
    done: ({ provider, environment }) => `set up ${provider} in ${environment}`,
    brief: ({ provider }) => provider,
  }),
  row("rm <application> <platform>", `DELETE ${GAMING}/{provider}`, {
    flags: { environment: environmentFlag },
    ...deletes((_, platform) => `Players of ${platform} will not get in.`),
    done: (_, [, platform]) => `deleted ${platform}`,
  }),
]

export const applicationResources: Resource[] = [
  {
    noun: "applications",
    alias: "apps",
    about: "manage applications, which end users sign in to",
    example: ["applications list", "apps create --name Shop"],
    rows: applicationRows,
  },
  {
    noun: "applications environments",
    about: "show and change the settings of live and test",
    rows: environmentRows,
  },
  {
    noun: "applications gaming",
    about: "choose the gaming platforms whose players get in",
    rows: gamingRows,
  },
  { noun: "applications keys", about: "manage public keys of applications", rows: keyRows },
]
