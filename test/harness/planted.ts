import { readFileSync } from "node:fs"
import { join } from "node:path"

/** Who owns the planted server. The password is planted, too. */
export const PLANTED_OWNER = { email: "ann@example.org", password: "Planted-River-42-stone" }

/** With them a server takes what is planted. It asks no name server of others. */
export const PLANTED_SETTINGS = {
  BELFRY_DNS_SERVERS: "127.0.0.1:9",
  BELFRY_SENDING_DOMAINS: "example.test",
  BELFRY_PROVIDERS_ALLOW_PRIVATE: "127.0.0.0/8",
  BELFRY_WEBHOOKS_REQUIRE_HTTPS: "false",
  BELFRY_WEBHOOKS_ALLOW_PRIVATE: "127.0.0.0/8",
}

const URL_TOKEN = "planted-in-the-url"
const HEADER = "planted-in-a-header"
const CREDENTIALS = "planted-in-credentials"
const TEMPLATE = "planted-in-a-template"
const BODY = "planted-in-a-body"
const FILE = "planted-in-a-file"
const RELAY = { host: "127.0.0.1", port: 9, username: "belfry", tls: "none" }
const FILE_CONTENT = Buffer.from(FILE).toString("base64")

interface PlantedServer {
  url: string
  data_dir: string
  /** Where webhooks go. */
  hook: string
}

/**
 * Makes the owner of a server, and plants a secret in each place that has one: a webhook, a provider, a template, messages.
 * The provider is a relay that refuses all connections, so there is work that fails and work that waits.
 */
export async function plant({ url, data_dir, hook }: PlantedServer) {
  const setup_token = readFileSync(join(data_dir, "setup-token"), "utf8").trim()
  const anybody = caller(url, {})
  const owner = { setup_token, ...PLANTED_OWNER, account_name: "Acme" }
  const made = await anybody<SetUp>("/v1/setup", owner)
  const api_key = made.api_key.key
  const { access_token } = made.session
  const call = caller(url, { authorization: `Bearer ${api_key}` })
  const person = caller(url, {
    authorization: `Bearer ${access_token}`,
    "x-account-id": made.account.id,
    "x-project-id": made.project.id,
  })
  const { secret } = await call<{ secret: string }>("/v1/webhooks", {
    url: `${hook}${URL_TOKEN}?token=${URL_TOKEN}`,
    events: ["*"],
    headers: { "X-Token": HEADER },
  })
  await person("/v1/providers/email_provider/config", {
    provider: "smtp",
    name: "planted",
    credentials: { ...RELAY, password: CREDENTIALS },
  })
  const texts = { subject: `${TEMPLATE} {{name}}`, html: `<p>${TEMPLATE} {{name}}</p>` }
  await call("/v1/templates", { name: "planted", ...texts })
  await send(call)
  const sealed = [HEADER, CREDENTIALS, secret, access_token, api_key, PLANTED_OWNER.password]
  const key = readFileSync(join(data_dir, "master.key"), "utf8").trim()
  const all = [...sealed, key, URL_TOKEN, TEMPLATE, BODY, FILE, FILE_CONTENT]
  return {
    /** Sends planted mail by this server, which has the same data. */
    send: (url: string) => send(caller(url, { authorization: `Bearer ${api_key}` })),
    /** The planted values that a text shows. */
    shownIn: (text: string) => all.filter((value) => text.includes(value)),
    /** Those that a file has which no one can read without the master key. */
    unsealedIn: (bytes: Buffer) => [...sealed, key].filter((value) => bytes.includes(value)),
  }
}

export type Planted = Awaited<ReturnType<typeof plant>>

interface SetUp {
  account: { id: string }
  project: { id: string }
  api_key: { key: string }
  session: { access_token: string }
}

async function send(call: ReturnType<typeof caller>): Promise<void> {
  const mail = { from: "me@example.test", to: "ann@example.test" }
  const attachments = [{ filename: "a.txt", content: FILE_CONTENT }]
  await call("/v1/emails", { ...mail, subject: BODY, text: BODY, html: BODY, attachments })
  await call("/v1/emails", { ...mail, template_id: "planted", variables: { name: BODY } })
}

const caller =
  (url: string, headers: Record<string, string>) =>
  async <Data>(path: string, body: object): Promise<Data> => {
    const reply = await fetch(url + path, {
      method: "POST",
      headers: { ...headers, "content-type": "application/json" },
      body: JSON.stringify(body),
    })
    const answer = (await reply.json()) as { data?: Data; error?: unknown }
    if (!reply.ok) throw new Error(`${path}: ${reply.status} ${JSON.stringify(answer.error)}`)
    return (answer.data ?? answer) as Data
  }
