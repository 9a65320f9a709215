import { expect, test } from "bun:test"
import { onTerminal } from "./belfry"
import { FakeApi, ID, KEY } from "./fake-api"
import { belfry } from "./lines"

const SECRET = "horse-battery-staple"
const ALL = "/v1/providers/email_provider/config"
const TEXTS = "/v1/providers/sms_provider/config"

async function setting(words: string, stdin = "") {
  using api = new FakeApi()
  api.data(`POST ${ALL}`, { id: ID, provider: "smtp", name: "smtp", callback_url: null })
  api.data(`POST ${TEXTS}`, { id: ID, provider: "twilio", name: "twilio", callback_url: null })
  const flags = ["--url", api.url, "--api-key", KEY, "--verbose"]
  const ran = await belfry(["providers", "set", ...words.split(" "), ...flags], { stdin })
  return { ...ran, body: api.seen[0]?.body as Record<string, unknown> | undefined }
}

const relay = "smtp --host smtp.example.com --port 2525 --username me"

test.each([
  ["from stdin", `${relay} --secret-stdin`, `${SECRET}\nmore`],
  ["from a flag", `${relay} --password ${SECRET}`, ""],
])("a password %s is sent, and shown nowhere", async (_, words, stdin) => {
  const { exit, out, err, body } = await setting(words, stdin)
  expect(exit).toBe(0)
  expect(body).toEqual({
    provider: "smtp",
    credentials: { host: "smtp.example.com", port: 2525, username: "me", password: SECRET },
  })
  expect(out + err).not.toContain(SECRET)
})

test("the secret key of SES goes under its own name", async () => {
  const words = "ses --region eu-west-1 --access-key-id AKID --secret-stdin --max-per-second 14"
  const { body } = await setting(words, SECRET)
  expect(body).toEqual({
    provider: "ses",
    credentials: { region: "eu-west-1", access_key_id: "AKID", secret_access_key: SECRET },
    settings: { max_per_second: 14 },
  })
})

test("two secrets are two lines, and the kind follows from the provider", async () => {
  using api = new FakeApi()
  api.data("POST /v1/providers/sms_provider/config", { id: ID, provider: "twilio", name: "twilio" })
  const flags = ["--api-key-sid", "SK1", "--secret-stdin", "--url", api.url, "--api-key", KEY]
  const stdin = `token-of-the-account\n${SECRET}\n`
  const words = ["providers", "set", "twilio", "--account-sid", "AC1", ...flags]
  expect((await belfry(words, { stdin })).exit).toBe(0)
  const [auth_token, api_key_secret] = ["token-of-the-account", SECRET]
  const credentials = { account_sid: "AC1", auth_token, api_key_sid: "SK1", api_key_secret }
  expect(api.seen[0]?.body).toEqual({ provider: "twilio", credentials })
  expect((await belfry(words, { stdin: "one line" })).exit).toBe(2)
})

test("a provider of texts has settings of its own", async () => {
  const words = "http --http-url http://gateway.test/ --from +4312345 --allowed-countries +43,+49"
  const { body } = await setting(`${words} --per-country-from {"+49":"Bell"}`)
  expect(body).toEqual({
    provider: "http",
    credentials: { url: "http://gateway.test/" },
    settings: {
      from: "+4312345",
      allowed_countries: ["+43", "+49"],
      per_country_from: { "+49": "Bell" },
    },
  })
})

test("who needs no secret is asked for none", async () => {
  for (const words of ["direct", "mailbox", "smtp --host smtp.example.com"]) {
    expect((await setting(words)).exit).toBe(0)
  }
})

test("without a terminal, a secret that nobody gave is a mistake of usage", async () => {
  const { exit, err, body } = await setting(relay)
  expect([exit, body]).toEqual([2, undefined])
  expect(err).toContain("there is no terminal for this question")
})

test("a dry run shows the request without its secret, however deep that is", async () => {
  const { exit, out, err, body } = await setting(`${relay} --secret-stdin --dry-run`, SECRET)
  expect([exit, body]).toEqual([0, undefined])
  expect(out).toContain("smtp.example.com")
  expect(out + err).not.toContain(SECRET)
})

test.each([
  ["twillio --account-sid AC1", "there is no provider twillio"],
  ["direct --host smtp.example.com", "--host is not a flag of direct"],
])("%s is refused before anything is sent", async (words, why) => {
  const { exit, err, body } = await setting(words)
  expect([exit, body]).toEqual([2, undefined])
  expect(err).toContain(why)
})

test("a port that is no number is refused before anything is sent", async () => {
  const { exit, body } = await setting("smtp --host smtp.example.com --port many")
  expect([exit, body]).toEqual([2, undefined])
})

const SHOWN = {
  smtp: {
    host: "old.example.com",
    port: 587,
    tls: "starttls",
    username: "me",
    password: "****aple",
  },
  ses: { region: "eu-west-1", access_key_id: "****WXYZ", secret_access_key: "****EKEY" },
}

async function updating(provider: keyof typeof SHOWN, words: string, stdin = "") {
  using api = new FakeApi()
  const config = { id: ID, provider, name: provider, credentials: SHOWN[provider], settings: {} }
  api.data("GET /v1/providers", [{ id: ID, kind: "email_provider" }])
  api.data(`GET ${ALL}/${ID}`, config)
  api.data(`PATCH ${ALL}/${ID}`, config)
  const flags = ["--url", api.url, "--api-key", KEY]
  const ran = await belfry(["providers", "update", ID, ...words.split(" "), ...flags], { stdin })
  const sent = api.seen.find(({ method }) => method === "PATCH")
  return { ...ran, body: sent?.body }
}

test("new credentials keep what is shown of the old ones, and never what is masked", async () => {
  const password = await updating("smtp", "--secret-stdin", SECRET)
  expect(password.body).toEqual({ credentials: { ...SHOWN.smtp, password: SECRET } })
  const moved = await updating("smtp", "--host new.example.com --port 25 --secret-stdin", SECRET)
  expect(moved.body).toEqual({
    credentials: { ...SHOWN.smtp, host: "new.example.com", port: 25, password: SECRET },
  })
  const keys = await updating("ses", "--access-key-id AKID --secret-stdin", SECRET)
  expect(keys.body).toEqual({
    credentials: { region: "eu-west-1", access_key_id: "AKID", secret_access_key: SECRET },
  })
  expect((await updating("ses", "--secret-stdin", SECRET)).exit).toBe(2)
  expect((await updating("smtp", "--priority 3")).body).toEqual({ priority: 3 })
})

test("a change of a provider of texts finds its kind, and keeps what is JSON", async () => {
  using api = new FakeApi()
  const status_map = { DONE: "delivered" }
  const credentials = { url: "****send", method: "POST", status_map }
  const config = { id: ID, kind: "sms_provider", provider: "http", credentials, settings: {} }
  api.data("GET /v1/providers", [config])
  api.data(`GET ${TEXTS}/${ID}`, config)
  api.data(`PATCH ${TEXTS}/${ID}`, config)
  const flags = ["--http-url", "http://gateway.test/", "--from", "none"]
  const env = { BELFRY_URL: api.url, BELFRY_API_KEY: KEY }
  const { exit } = await belfry(["providers", "update", ID, ...flags], { env })
  expect(exit).toBe(0)
  expect(api.seen.find(({ method }) => method === "PATCH")?.body).toEqual({
    credentials: { url: "http://gateway.test/", method: "POST", status_map },
    settings: { from: null },
  })
})

test("a setting is changed alone, and none forgets it", async () => {
  const settings = async (words: string) => (await updating("smtp", words)).body
  expect(await settings("--max-per-second 7")).toEqual({ settings: { max_per_second: 7 } })
  expect(await settings("--spf a:a.test --spf a:b.test")).toEqual({
    settings: { spf: ["a:a.test", "a:b.test"] },
  })
  expect(await settings("--max-per-second none --spf none")).toEqual({
    settings: { max_per_second: null, spf: null },
  })
})

test("get shows the pace, and what SPF records need", async () => {
  using api = new FakeApi()
  const settings = { max_per_second: 7, spf: ["include:spf.a.test", "ip4:192.0.2.1"] }
  const config = { id: ID, provider: "smtp", name: "smtp", enabled: true, status: "active" }
  api.data("GET /v1/providers", [{ id: ID, kind: "email_provider" }])
  api.data(`GET ${ALL}/${ID}`, { ...config, settings })
  const env = { BELFRY_URL: api.url, BELFRY_API_KEY: KEY }
  const { out } = await onTerminal(["providers", "get", ID], { env })
  expect(Bun.stripANSI(out)).toMatch(/^per second +7\r?$/m)
  expect(Bun.stripANSI(out)).toMatch(/^spf +include:spf\.a\.test ip4:192\.0\.2\.1\r?$/m)
})
