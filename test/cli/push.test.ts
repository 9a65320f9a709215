import { afterAll, beforeAll, expect, test } from "bun:test"
import { generateKeyPairSync } from "node:crypto"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { freshHome } from "./belfry"
import { box } from "./box"

let server: Awaited<ReturnType<typeof box>>
/** A push service that takes everything. */
let service: ReturnType<typeof Bun.serve>
beforeAll(async () => {
  server = await box()
  const fetch = () => new Response(null, { status: 201 })
  service = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch })
  await json(["push", "public-key"])
})
afterAll(async () => {
  await server[Symbol.asyncDispose]()
  await service.stop(true)
})

/** Runs a command with the key of the server. */
const ask = (words: string[], stdin?: string) =>
  server.ann([...words, "--url", server.url, "--api-key", server.api_key], stdin)

async function json<Printed>(words: string[], stdin?: string): Promise<Printed> {
  const { exit, out, err } = await ask(words, stdin)
  expect([words.join(" "), exit, err]).toEqual([words.join(" "), 0, expect.any(String)])
  return JSON.parse(out) as Printed
}

/** Exit and code of what is refused. */
async function refusal(...words: string[]) {
  const { exit, err } = await ask(words)
  return [exit, JSON.parse(err).error.code]
}

const KEYS = {
  p256dh: "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
  auth: "BTBZMqHH6r4Tts7J_aSIgg",
}

type Device = { id: string; device_id: string } & Record<string, unknown>

/** A browser of somebody, by a subscription in a file. */
function register(device_id: string, user: string, ...words: string[]) {
  const file = join(freshHome(), "subscription.json")
  const endpoint = new URL(`/${device_id}`, service.url).href
  writeFileSync(file, JSON.stringify({ endpoint, keys: KEYS }))
  const device = ["--device-id", device_id, "--user-id", user, "--subscription", `@${file}`]
  return json<Device>(["devices", "register", "--platform", "web", ...device, ...words])
}

type Sent = { id: string; devices: number; messages: { id: string; device_id: string }[] }
type Push = { id: string; device_id: string; status: string; title: string }

test("a message reaches all devices of a user, and the list finds them by their send", async () => {
  await register("laptop", "user-1")
  await register("tablet", "user-1")
  const content = ["--badge", "2", "--data", '{"table": "7"}', "--action", "yes=I come=/yes"]
  const sent = await json<Sent>(["push", "send", "Ready", "Now.", "--to", "user-1", ...content])
  expect(sent.devices).toBe(2)
  const listed = await json<Push[]>(["push", "list", "--batch", sent.id])
  expect(listed.map(({ device_id }) => device_id).sort()).toEqual(["laptop", "tablet"])
  const [first] = listed
  const shown = await json<object>(["push", "get", first?.id ?? ""])
  expect(shown).toMatchObject({ title: "Ready", body: "Now.", badge: 2, data: { table: "7" } })
  expect(shown).toMatchObject({ action_buttons: [{ id: "yes", label: "I come", url: "/yes" }] })
  expect(await json<object>(["push", "explain", first?.id ?? ""])).toHaveProperty("summary")
  expect(await json<object>(["push", "stats"])).toMatchObject({ total: expect.any(Number) })
})

test("what is waited for ends with 1 where no device tells that it has it", async () => {
  await register("silent", "user-2")
  const words = ["push", "send", "Hi", "--to", "user-2", "--wait", "--timeout", "1s"]
  const { exit, out } = await ask(words)
  expect([exit, (JSON.parse(out) as Push[])[0]?.status]).toEqual([1, "sent"])
})

test("a scheduled message is cancelled, and an ack needs the token of the message", async () => {
  await register("clock", "user-3")
  const words = ["push", "send", "Later", "--device-id", "clock", "--schedule-at", "in 1h"]
  const { id } = await json<Sent>(words)
  expect(await json<Push>(["push", "cancel", id])).toMatchObject({ status: "cancelled" })
  const ack = ["push", "ack", id, "opened", "--ack-token", "AAAAAAAAAAAAAAAAAAAAAA"]
  expect(await refusal(...ack)).toEqual([4, "unauthorized"])
})

test("batches of devices and of messages tell what was refused", async () => {
  const subscription = { endpoint: new URL("/b", service.url).href, keys: KEYS }
  const devices = [
    { device_id: "b", user_id: "user-4", platform: "web", subscription },
    { device_id: "c", user_id: "user-4", platform: "web" },
  ]
  const registered = await ask(["devices", "batch", "-"], JSON.stringify({ devices }))
  expect([registered.exit, JSON.parse(registered.out).succeeded]).toEqual([8, 1])
  const messages = ['{"user_id": "user-4", "title": "one"}', '{"device_id": "c", "title": "two"}']
  const sent = await ask(["push", "batch", "-"], messages.join("\n"))
  const { succeeded, results } = JSON.parse(sent.out)
  expect([sent.exit, succeeded, results[1].error.code]).toEqual([8, 1, "device_not_found"])
})

test("a device is found by its name, also by one like the end of an id, and by that end", async () => {
  const { id } = await register("cafe1234", "12345678", "--metadata", "room=7")
  expect(await json<Device>(["devices", "get", "cafe1234"])).toMatchObject({ id })
  expect(await json<Device>(["devices", "get", id.slice(-8)])).toMatchObject({ id })
  const listed = await json<Device[]>(["devices", "list", "--user-id", "12345678"])
  expect(listed.map(({ device_id }) => device_id)).toEqual(["cafe1234"])
  const off = await json<Device>(["devices", "update", "cafe1234", "--enabled", "off"])
  expect(off).toMatchObject({ status: "disabled", metadata: { room: "7" } })
  expect(await json<Device>(["devices", "unlink", "cafe1234"])).toMatchObject({ user_id: null })
  expect(await json<object>(["devices", "rm", "cafe1234", "--yes"])).toMatchObject({
    deleted: true,
  })
  expect(await refusal("devices", "get", "cafe1234")).toEqual([3, "device_not_found"])
})

test("all devices of a user are removed by one command, once somebody has said so", async () => {
  for (const name of ["one", "two"]) await register(name, "user-5")
  expect((await ask(["devices", "rm", "--user-id", "user-5"])).exit).toBe(2)
  const gone = await json<object>(["devices", "rm", "--user-id", "user-5", "--yes"])
  expect(gone).toEqual({ user_id: "user-5", deleted: 2 })
  expect((await ask(["devices", "rm", "--yes"])).exit).toBe(2)
  expect((await ask(["devices", "rm", "one", "--user-id", "user-5", "--yes"])).exit).toBe(2)
  expect(await json<object>(["devices", "stats"])).toMatchObject({ total: expect.any(Number) })
})

test("credentials come from files, and only the end of a secret is shown again", async () => {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" })
  const pem = privateKey.export({ type: "pkcs8", format: "pem" }) as string
  const file = join(freshHome(), "AuthKey.p8")
  writeFileSync(file, pem)
  const names = ["--key-id", "ABC123DEFG", "--team-id", "DEF123GHIJ", "--bundle-id", "com.acme.app"]
  const set = ["push", "config", "set", "apns", ...names]
  expect(await refusal(...set, "--private-key", "@nowhere.p8")).toEqual([66, "missing_file"])
  expect(await refusal(...set, "--subject", "mailto:a@b.test")).toEqual([2, "usage"])
  for (const [from, stdin] of [[file], ["-", pem]] as const)
    await json(set.concat("--private-key", `@${from}`), stdin)
  const { apns, fcm } = await json<Record<string, { credentials: object }>>([
    "push",
    "config",
    "get",
  ])
  expect([apns?.credentials, fcm]).toMatchObject([{ key_id: "ABC123DEFG" }, null])
  expect(JSON.stringify(apns)).not.toContain(pem.split("\n")[1] ?? "")
  await json(["push", "config", "rm", "apns", "--yes"])
  expect((await json<{ apns: null }>(["push", "config", "get"])).apns).toBeNull()
})

test("the public key is that of the project, and a test of Web Push says what it tried", async () => {
  const { public_key } = await json<{ public_key: string }>(["push", "public-key"])
  expect(Buffer.from(public_key, "base64url")).toHaveLength(65)
  const set = ["push", "config", "set", "webpush", "--subject", "mailto:push@acme.test"]
  await json(set)
  expect(await json<object>(["push", "public-key"])).toEqual({ public_key })
  expect(await json<object>(["push", "config", "test", "webpush"])).toMatchObject({ ok: true })
})

test("what is wrong is told by its flag, before or after the server was asked", async () => {
  const hi = ["push", "send", "Hi"]
  expect(await refusal(...hi, "--to", "u", "--action", "accept")).toEqual([2, "usage"])
  expect(await refusal(...hi, "--to", "u", "--apns", "[1]")).toEqual([2, "usage"])
  expect(await refusal(...hi, "--to", "nobody")).toEqual([3, "device_not_found"])
  // Nobody looked for the title.
  expect((await ask([...hi, "--to", "nobody"])).err).not.toContain("Hi")
  expect(await refusal(...hi)).toEqual([7, "missing_required_field"])
  expect(await refusal("devices", "register", "--platform", "web")).toEqual([
    7,
    "missing_required_field",
  ])
})
