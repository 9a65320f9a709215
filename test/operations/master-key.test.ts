import { describe, expect, test } from "bun:test"
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { eq, getTableName } from "drizzle-orm"
import { openSecrets } from "../../src/core/secrets"
import { clock } from "../../src/core/time"
import { enqueue } from "../../src/jobs/jobs"
import { showLife } from "../../src/jobs/work-nodes"
import { ERASED, subscriberErased } from "../../src/operations/erase-subscriber"
import {
  LINK_KEY,
  MASTER_KEY,
  NEXT_MASTER_KEY,
  requireMasterKey,
} from "../../src/operations/instance"
import {
  acceptLostKey,
  lostSecrets,
  masterKeyFollower,
  rotateMasterKey,
  sealedRows,
} from "../../src/operations/master-key"
import { SEALED_COLUMNS } from "../../src/operations/sealed-columns"
import * as instanceValues from "../../src/store/instance-values"
import { webhooks } from "../../src/webhooks/tables"
import { atRest } from "../harness/at-rest"
import { dying } from "../harness/dying-store"
import { leftover } from "../harness/leftovers"
import { quietLog } from "../harness/quiet"
import { testService } from "../harness/service"
import { sources } from "../harness/sources"
import { type TestStore, testStore } from "../harness/store"
import { endpoint } from "../webhooks/endpoints"
import { openedAnew, PLAIN, sealWebhooks, secretsOf, webhookRow } from "./sealed-rows"

quietLog()

const NEW_KEY = Buffer.alloc(32, 9).toString("base64")
const NO_CHANGE = { new_key: null, end_links: false }

/** A store with one sealed value in each kind of place that has no foreign rows. */
async function sealedStore() {
  const base: TestStore = await testStore()
  const secrets = secretsOf(base.folder)
  await requireMasterKey(base.store, secrets)
  const seal = (context: string) => secrets.seal(PLAIN, context)
  await base.store.tx(async (tx) => {
    await instanceValues.set(tx, "setup_token", seal("setup_token"))
    await enqueue(tx, subscriberErased, { payload: { sealed: seal(ERASED) }, project_id: null })
  })
  await sealWebhooks(base.store, secrets, 250)
  return { ...base, secrets, [Symbol.asyncDispose]: () => base[Symbol.asyncDispose]() }
}

describe("a rotation", () => {
  test("seals every value anew, and the next start needs the new key alone", async () => {
    await using it = await sealedStore()
    const from = it.secrets.key_id
    const rotated = await rotateMasterKey(it, NO_CHANGE)
    expect(rotated).toMatchObject({ from, to: it.secrets.key_id, resealed: 252 })
    expect(rotated.to).not.toBe(from)
    rmSync(join(it.folder, "master.key.old"))
    const { key_ids, plain, secrets } = await openedAnew(it.store, it.folder)
    expect({ key_ids, plain }).toEqual({ key_ids: [rotated.to], plain: 252 })
    expect(secrets.key_id).toBe(rotated.to)
    expect((await atRest(it)).includes(`v1.${from}.`)).toBe(false)
  })

  test("takes a given key, and keeps the one before beside it", async () => {
    await using it = await sealedStore()
    const before = readFileSync(join(it.folder, "master.key"), "utf8")
    await rotateMasterKey(it, { new_key: NEW_KEY, end_links: false })
    expect(readFileSync(join(it.folder, "master.key"), "utf8").trim()).toBe(NEW_KEY)
    expect(readFileSync(join(it.folder, "master.key.old"), "utf8")).toBe(before)
    expect(existsSync(join(it.folder, "master.key.next"))).toBe(false)
  })

  test("to the key that is in use is refused, also where an ended one is run again, and no key is lost", async () => {
    await using it = await sealedStore()
    const before = readFileSync(join(it.folder, "master.key"), "utf8")
    const in_use = rotateMasterKey(it, { new_key: before.trim(), end_links: false })
    expect(in_use).rejects.toThrow("is the key in use")
    await in_use.catch(() => {})
    expect(existsSync(join(it.folder, "master.key.next"))).toBe(false)
    const wanted = { new_key: NEW_KEY, end_links: false }
    expect(await rotateMasterKey(it, wanted)).toMatchObject({ resealed: 252 })
    const again = rotateMasterKey(it, wanted)
    expect(again).rejects.toThrow("is the key in use")
    await again.catch(() => {})
    expect(readFileSync(join(it.folder, "master.key"), "utf8").trim()).toBe(NEW_KEY)
    expect(readFileSync(join(it.folder, "master.key.old"), "utf8")).toBe(before)
  })

  test("keeps the keys of all earlier rotations, because older backups need them", async () => {
    await using it = await sealedStore()
    const key = (name: string) => readFileSync(join(it.folder, name), "utf8").trim()
    const [first, first_id] = [key("master.key"), it.secrets.key_id]
    await rotateMasterKey(it, NO_CHANGE)
    const [second, second_id] = [key("master.key"), it.secrets.key_id]
    await rotateMasterKey(it, NO_CHANGE)
    expect([key(`master.key.old-${first_id}`), key("master.key.old")]).toEqual([first, second])
    await rotateMasterKey(it, NO_CHANGE)
    expect(key(`master.key.old-${second_id}`)).toBe(second)
  })

  test("keeps the keys of all earlier rotations where the settings name the key, too", async () => {
    await using it = await sealedStore()
    const key = (name: string) => readFileSync(join(it.folder, name), "utf8").trim()
    const master_key = key("master.key")
    const secrets = openSecrets({ data_dir: it.folder, master_key })
    await requireMasterKey(it.store, secrets)
    const made: { id: string; text: string }[] = []
    for (let round = 0; round < 3; round++) {
      await rotateMasterKey({ store: it.store, secrets }, NO_CHANGE)
      made.push({ id: secrets.key_id, text: key("master.key.next") })
    }
    expect(key(`master.key.old-${made[0]?.id}`)).toBe(made[0]?.text ?? "")
    expect(key("master.key.old")).toBe(made[1]?.text ?? "")
  })

  test("keeps links in mail valid, twice, and ends them where that is asked for", async () => {
    await using it = await sealedStore()
    const mac = it.secrets.mac("unsubscribe", "ann")
    await rotateMasterKey(it, NO_CHANGE)
    await rotateMasterKey(it, NO_CHANGE)
    expect(it.secrets.mac("unsubscribe", "ann")).toEqual(mac)
    const again = await openedAnew(it.store, it.folder)
    expect(again.secrets.mac("unsubscribe", "ann")).toEqual(mac)
    await rotateMasterKey(it, { new_key: null, end_links: true })
    expect(it.secrets.mac("unsubscribe", "ann")).not.toEqual(mac)
    const ended = (await openedAnew(it.store, it.folder)).secrets.mac("unsubscribe", "ann")
    expect(ended).toEqual(it.secrets.mac("unsubscribe", "ann"))
    expect(await instanceValues.find(it.store.read, LINK_KEY)).toBeUndefined()
  })

  test("refuses what is no key, and another key than the one it began with", async () => {
    await using it = await sealedStore()
    const refused = (new_key: string) =>
      rotateMasterKey(it, { new_key, end_links: false }).catch((error: Error) => error.message)
    expect(await refused("short")).toContain("32 bytes in base64")
    it.secrets.keys.next(NEW_KEY)
    expect(await refused(Buffer.alloc(32, 8).toString("base64"))).toContain("has begun")
  })
})

test("the service works on while its key is rotated, and all it seals opens afterwards", async () => {
  await using service = await testService()
  const { store, parts, folder } = service
  await requireMasterKey(store, parts.secrets)
  const project = await service.project()
  const made = Array.from({ length: 30 }, () => endpoint(project))
  const [rotated] = await Promise.all([rotateMasterKey(parts, NO_CHANGE), ...made])
  await endpoint(project)
  expect((await openedAnew(store, folder)).key_ids).toEqual([rotated.to])
})

test("another node follows to the key that its folder has, and keeps its links", async () => {
  await using it = await sealedStore()
  if (it.store.isAlone) return // there is no other node
  const node = { store: it.store, secrets: secretsOf(it.folder) }
  await requireMasterKey(node.store, node.secrets)
  const mac = node.secrets.mac("unsubscribe", "ann")
  const follow = masterKeyFollower(node)
  const { to } = await rotateMasterKey(it, NO_CHANGE)
  await follow()
  expect(node.secrets.key_id).toBe(to)
  expect(node.secrets.mac("unsubscribe", "ann")).toEqual(mac)
})

test("a node that kept the key of links while it followed lets it go where links end", async () => {
  await using it = await sealedStore()
  const node = secretsOf(it.folder)
  await requireMasterKey(it.store, node)
  node.keys.useForMacs(node.keys.forMacs())
  await rotateMasterKey(it, { new_key: null, end_links: true })
  await requireMasterKey(it.store, node)
  expect(node.mac("unsubscribe", "ann")).toEqual(it.secrets.mac("unsubscribe", "ann"))
})

test("another node gives the key its usual file when the rotation has ended", async () => {
  await using it = await sealedStore()
  if (it.store.isAlone) return // there is no other node
  const folder = leftover(mkdtempSync(join(tmpdir(), "belfry-node-")))
  copyFileSync(join(it.folder, "master.key"), join(folder, "master.key"))
  writeFileSync(join(folder, "master.key.next"), `${NEW_KEY}\n`, { mode: 0o600 })
  const follow = masterKeyFollower({ store: it.store, secrets: secretsOf(folder) })
  await rotateMasterKey(it, { new_key: NEW_KEY, end_links: false })
  await follow()
  expect(existsSync(join(folder, "master.key.next"))).toBe(false)
  expect(readFileSync(join(folder, "master.key"), "utf8").trim()).toBe(NEW_KEY)
})

test("a kill at any step leaves a database that opens, and the next call ends the rotation", async () => {
  await using it = await sealedStore()
  const first = secretsOf(it.folder).key_id
  let steps = 0
  for (let is_killed = true; is_killed; steps++) {
    const secrets = secretsOf(it.folder) // as a process that starts now
    await requireMasterKey(it.store, secrets)
    const stopped = await rotateMasterKey(
      { store: dying(it.store, steps), secrets },
      { new_key: NEW_KEY, end_links: false },
    ).then(
      () => false,
      (error: Error) => error.message === "killed",
    )
    is_killed = stopped
    expect((await openedAnew(it.store, it.folder)).plain).toBe(252)
  }
  expect(steps).toBeGreaterThan(4)
  const { key_ids, secrets } = await openedAnew(it.store, it.folder)
  expect(secrets.key_id).not.toBe(first)
  expect(key_ids).toEqual([secrets.key_id])
})

test("a value of a lost key does not stop a rotation, and is listed as lost afterwards", async () => {
  await using it = await sealedStore()
  const other = openSecrets({ data_dir: it.folder, master_key: NEW_KEY })
  const id = Bun.randomUUIDv7()
  const sealed = other.seal("gone", `webhooks:${id}:secret`)
  await it.store.tx((tx) => tx.insert(webhooks).values(webhookRow(id, sealed)))
  expect(await rotateMasterKey(it, NO_CHANGE)).toMatchObject({ resealed: 252 })
  const lost = await lostSecrets(it.store, it.secrets)
  expect(lost.map(({ column, count }) => [column, count])).toEqual([["webhooks.secret", 1]])
})

test("of two rotations at once the second is refused, and the first one ends", async () => {
  await using it = await sealedStore()
  const first = rotateMasterKey(it, NO_CHANGE)
  const second = await rotateMasterKey(it, NO_CHANGE).catch((error: Error) => error.message)
  expect(second).toContain("earlier command")
  const { to } = await first
  expect((await openedAnew(it.store, it.folder)).key_ids).toEqual([to])
})

test("a rotation that began with a key of another folder is not replaced by one with a new key", async () => {
  await using it = await sealedStore()
  await it.store.tx((tx) => instanceValues.set(tx, NEXT_MASTER_KEY, "0123abcd"))
  const rotate = (new_key: string | null) =>
    rotateMasterKey(it, { new_key, end_links: false }).catch((error: Error) => error.message)
  expect(await rotate(null)).toContain("to the key 0123abcd has begun")
  expect(existsSync(join(it.folder, "master.key.next"))).toBe(false)
  it.secrets.keys.next(NEW_KEY)
  expect(await rotate(NEW_KEY)).toContain("to the key 0123abcd has begun")
  expect((await openedAnew(it.store, it.folder)).plain).toBe(252)
})

test("a command beside one node of another machine needs the new key in both folders", async () => {
  await using it = await sealedStore()
  if (it.store.isAlone) return // there is no other node
  await showLife(it.store, Bun.randomUUIDv7())
  const { read } = clock
  for (const ahead_ms of [0, 3_600_000]) {
    clock.read = () => read() + ahead_ms // nodes are told by the clock of the database
    const beside = rotateMasterKey({ ...it, own_nodes: 0 }, NO_CHANGE)
    const said = await beside.catch((error: Error) => error.message)
    clock.read = read
    expect([ahead_ms, said]).toEqual([ahead_ms, expect.stringContaining("Several nodes")])
  }
  expect(await rotateMasterKey(it, NO_CHANGE)).toMatchObject({ resealed: 252 })
})

test("a kill in a second rotation loses no key, also where the settings still have the first one", async () => {
  await using it = await sealedStore()
  const master_key = readFileSync(join(it.folder, "master.key"), "utf8").trim()
  const start = async () => {
    const secrets = openSecrets({ data_dir: it.folder, master_key })
    await requireMasterKey(it.store, secrets)
    return secrets
  }
  const secrets = await start()
  const { to } = await rotateMasterKey({ store: it.store, secrets }, NO_CHANGE)
  expect(secrets.keys.hasNext()).toBe(false)
  const killed = rotateMasterKey({ store: dying(it.store, 1), secrets }, NO_CHANGE)
  expect(await killed.catch((error: Error) => error.message)).toBe("killed")
  expect((await start()).key_id).toBe(to)
  expect(await lostSecrets(it.store, await start())).toEqual([])
})

test("a kill between the database and the files is made good by the next start", async () => {
  await using it = await sealedStore()
  const to = it.secrets.keys.next(NEW_KEY)
  await it.store.tx((tx) => instanceValues.set(tx, MASTER_KEY, to))
  const { secrets, plain } = await openedAnew(it.store, it.folder)
  expect([secrets.key_id, plain]).toEqual([to, 252])
  expect(readFileSync(join(it.folder, "master.key"), "utf8").trim()).toBe(NEW_KEY)
})

describe("the list of sealed columns", () => {
  /** Where something is sealed. Each file's column is in the list, or the value is in no column. */
  const SEALING = [
    "src/auth/environment-changes.ts",
    "src/auth/factors/enrolment.ts",
    "src/auth/social/gaming-providers.ts",
    "src/auth/social/oauth-flows.ts",
    "src/auth/social/oauth-providers.ts",
    "src/domains/keys.ts",
    "src/http/idempotency.ts",
    "src/identity/access-token.ts",
    "src/identity/mfa.ts",
    "src/inbound/file-tokens.ts", // in links that end within days
    "src/mailbox/mail-page.ts", // in addresses that end within minutes
    "src/mailbox/mailbox.ts",
    "src/messages/sealed-contents.ts",
    "src/operations/erase-subscriber.ts",
    "src/operations/master-key.ts",
    "src/providers/credentials.ts",
    "src/sign-in/person-sessions.ts",
    "src/signing-keys/signing-keys.ts",
    "src/tenancy/setup.ts",
    "src/webhooks/receiver.ts",
    "src/webhooks/webhooks.ts",
  ]

  test("has the column of each file that seals: a new one has to be added to both", () => {
    const sealing = sources.filter(
      ({ path, code }) => path.startsWith("src/") && /\bseal\(|[?.]\.?seal\(/.test(code),
    )
    expect(sealing.map(({ path }) => path).sort()).toEqual(SEALING)
  })

  test("names every column that has a sealed value after work of many kinds", async () => {
    await using service = await testService()
    const project = await service.project()
    const { secret, id } = await endpoint(project, { headers: { "X-Token": "planted" } })
    await project.post(`/v1/webhooks/${id}/rotate-secret`, {})
    await project.post("/v1/domains", { name: "acme.test" })
    await project.post(
      "/v1/api-keys",
      { name: "k", scopes: ["email:send"] },
      { "Idempotency-Key": "k" },
    )
    expect(secret).toStartWith("whsec_")
    const { key_id } = service.parts.secrets
    const named = new Map<string, number>()
    for (const sealed of SEALED_COLUMNS) {
      const name = `${getTableName(sealed.column.table)}.${sealed.column.name}`
      for await (const rows of sealedRows(service.store, sealed)) {
        named.set(name, (named.get(name) ?? 0) + rows.length)
      }
    }
    const count = [...named.values()].reduce((sum, rows) => sum + rows, 0)
    expect(count).toBeGreaterThan(3)
    await service.store.emptyLog()
    const dump = await atRest(service)
    const found = dump.match(new RegExp(`v1.${key_id}.[A-Za-z0-9_-]{38,}`, "g")) ?? []
    expect(new Set(found).size).toBe(count)
  })
})

describe("a lost key", () => {
  test("is listed by what is gone, with a remedy, and without a secret", async () => {
    await using it = await sealedStore()
    expect(await lostSecrets(it.store, it.secrets)).toEqual([])
    rmSync(join(it.folder, "master.key"))
    const lost = await lostSecrets(it.store, secretsOf(it.folder))
    expect(lost.map(({ column, count }) => [column, count])).toEqual([
      ["instance_values.value", 1],
      ["jobs.payload", 1],
      ["webhooks.secret", 250],
    ])
    for (const { remedy } of lost) expect(remedy).not.toBe("")
    expect(JSON.stringify(lost)).not.toContain("v1.")
  })

  test("ends with a database that belongs to the new key", async () => {
    await using it = await sealedStore()
    writeFileSync(join(it.folder, "master.key"), `${NEW_KEY}\n`)
    const secrets = secretsOf(it.folder)
    expect(await requireMasterKey(it.store, secrets).catch((error: Error) => error.name)).toBe(
      "WrongMasterKey",
    )
    await acceptLostKey(it.store, secrets)
    await requireMasterKey(it.store, secrets)
    const left = await lostSecrets(it.store, secrets)
    expect(left.map(({ column, count }) => [column, count])).toEqual([["webhooks.secret", 250]])
    const [row] = await it.store.read.select().from(webhooks).limit(1)
    const again = secrets.seal("new", `webhooks:${row?.id}:secret`)
    await it.store.tx((tx) =>
      tx
        .update(webhooks)
        .set({ secret: again })
        .where(eq(webhooks.id, row?.id ?? "")),
    )
    expect((await lostSecrets(it.store, secrets))[0]?.count).toBe(249)
  })
})
