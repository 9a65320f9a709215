import { expect, test } from "bun:test"
import { openSecrets } from "../../src/core/secrets"
import * as apiKeys from "../../src/identity/api-keys"
import { accounts, apiKeys as keyTable, projects } from "../../src/identity/tables"
import { requireMasterKey, WrongMasterKey } from "../../src/operations/instance"
import { instanceValues } from "../../src/store/tables"
import { ensureFirst, type FirstOptions } from "../../src/tenancy/setup"
import { quietLog } from "../harness/quiet"
import { testStore } from "../harness/store"

quietLog()

const up: FirstOptions = { keep_key: true, new_key: false }
const init: FirstOptions = { keep_key: false, new_key: false }

async function fresh() {
  const base = await testStore()
  const secrets = openSecrets({ data_dir: base.folder, master_key: null })
  const { store } = base
  return {
    ...base,
    secrets,
    start: (options: FirstOptions) => ensureFirst(store, secrets, options),
    async keys(project_id: string) {
      const keys = apiKeys.apiKey.list(store.read, project_id)
      const { rows } = await keys.list({ limit: 100, offset: 0 })
      return rows.map((row) => apiKeys.toResponse(row).status)
    },
  }
}

test("the first start makes an account, a project and a key", async () => {
  await using it = await fresh()

  const first = await it.start(up)
  expect(first.created).toBe(true)
  expect(first.api_key).toMatch(/^svc_live_/)
  expect(await it.store.read.select().from(accounts)).toMatchObject([
    { id: first.account_id, status: "active", sending_status: "active" },
  ])
  expect(await it.store.read.select().from(projects)).toMatchObject([
    { id: first.project_id, account_id: first.account_id, status: "active" },
  ])
  expect(await it.keys(first.project_id)).toEqual(["active"])
})

test("every later start finds the same account, project and key", async () => {
  await using it = await fresh()
  const first = await it.start(up)

  for (let n = 0; n < 3; n++) expect(await it.start(up)).toEqual({ ...first, created: false })
  expect(await it.keys(first.project_id)).toEqual(["active"])
})

test("the key is nowhere in the database but sealed", async () => {
  await using it = await fresh()
  const { api_key } = await it.start(up)
  const secret = api_key ?? "none"

  const tables = [instanceValues, keyTable, accounts, projects]
  const rows = await Promise.all(tables.map((table) => it.store.read.select().from(table)))
  expect(JSON.stringify(rows)).not.toContain(secret)
  expect(JSON.stringify(rows)).not.toContain(secret.split("_").at(-1))
})

test("a new key on demand revokes the one before, and stays from then on", async () => {
  await using it = await fresh()
  const first = await it.start(up)
  const second = await it.start({ keep_key: true, new_key: true })

  expect(second).toMatchObject({ project_id: first.project_id, created: false })
  expect(second.api_key).not.toBe(first.api_key)
  expect(await it.keys(first.project_id)).toEqual(["active", "revoked"])
  expect(await it.start(up)).toEqual(second)
})

test("a kept key that somebody revoked is replaced at the next start", async () => {
  await using it = await fresh()
  const first = await it.start(up)
  const [row] = await it.store.read.select().from(keyTable)
  await it.store.tx((tx) => apiKeys.revoke(tx, first.project_id, row?.id ?? ""))

  const second = await it.start(up)
  expect(second.api_key).toBeString()
  expect(second.api_key).not.toBe(first.api_key)
  expect(await it.keys(first.project_id)).toEqual(["active", "revoked"])
})

test("without keeping, the key is told once and never again", async () => {
  await using it = await fresh()
  const first = await it.start(init)
  expect(first).toMatchObject({ created: true, api_key: expect.stringMatching(/^svc_live_/) })

  expect(await it.start(init)).toEqual({ ...first, api_key: null, key_id: null, created: false })
  expect(await it.keys(first.project_id)).toEqual(["active"])
})

test("who starts to keep a key after an init gets one of his own", async () => {
  await using it = await fresh()
  const first = await it.start(init)
  const second = await it.start(up)

  expect(second.project_id).toBe(first.project_id)
  expect(second.api_key).not.toBe(first.api_key)
  expect(await it.keys(first.project_id)).toEqual(["active", "active"])
  expect(await it.start(up)).toEqual(second)
  expect((await it.start(init)).api_key).toBeNull() // it is there, but for `up` only
})

test("several first starts at once make one account, and know one key", async () => {
  await using it = await fresh()
  const all = await Promise.all([1, 2, 3, 4].map(() => it.start(up)))

  expect(new Set(all.map(({ project_id }) => project_id)).size).toBe(1)
  expect(new Set(all.map(({ api_key }) => api_key)).size).toBe(1)
  expect(all.filter(({ created }) => created)).toHaveLength(1)
  expect(await it.store.read.select().from(accounts)).toHaveLength(1)
})

test("the database belongs to the master key of its first start", async () => {
  await using it = await fresh()
  const other = openSecrets({
    data_dir: it.folder,
    master_key: Buffer.alloc(32, 7).toString("base64"),
  })
  await requireMasterKey(it.store, it.secrets)
  await requireMasterKey(it.store, it.secrets)

  const error = await requireMasterKey(it.store, other).catch((one: unknown) => one)
  expect(error).toBeInstanceOf(WrongMasterKey)
  expect((error as Error).message).toContain(it.secrets.key_id)
  expect((error as Error).message).toContain(other.key_id)
})
