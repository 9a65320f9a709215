import { afterEach, beforeEach, expect, test } from "bun:test"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { openArchive } from "../../../src/operations/backup/archive-reader"
import { restore } from "../../../src/operations/restore/restore"
import { ALLOWED_WHILE_HELD } from "../../../src/work"
import { team } from "../../harness/people"
import { quietLog } from "../../harness/quiet"
import type { TestService } from "../../harness/service"
import { original, target } from "./original"

quietLog()

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "belfry-unknown-"))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

/** What a restore tells of that may have changed since the backup. */
async function told(box: Awaited<ReturnType<typeof original>>, revoke_keys = false) {
  await using place = await target(folder)
  const { secrets } = box
  const parts = { settings: place.settings, secrets, master_key: null, runs_on: ALLOWED_WHILE_HELD }
  const archive = await openArchive(await box.archive())
  return (await restore(archive, { ...parts, revoke_keys })).unknown
}

/** One that is used and one that is not, in the account of a new person. */
async function twoProviders(service: TestService) {
  const { owner, account_id, project_id } = await team(service)
  const here = { "x-account-id": account_id, "x-project-id": project_id }
  const all = "/v1/providers/email_provider/config"
  const credentials = { host: "127.0.0.1", port: 2525, username: "a", password: "b", tls: "none" }
  const ids: string[] = []
  for (const name of ["on", "off"]) {
    const made = await owner.post(all, { provider: "smtp", name, credentials }, here)
    ids.push(made.body.data.id)
  }
  await owner.patch(`${all}/${ids[1]}`, { enabled: false }, here)
  return owner
}

test("a restore lists what may have been revoked, suppressed or erased since, by kind and by project", async () => {
  await using box = await original()
  const { project, service } = box
  const { email } = await twoProviders(service)
  const url = "https://hooks.example.test/in?token=secret"
  await project.post("/v1/webhooks", { url, events: ["*"] })
  const off = { url: "https://off.example.test/in", events: ["*"] }
  const { id } = (await project.post("/v1/webhooks", off)).body.data
  await project.post(`/v1/webhooks/${id}/disable`)
  for (const scope of ["email:send", "email:read"]) await project.addKey({ scopes: [scope] })
  await project.post("/v1/suppressions", { email: "stop@example.test" })
  const made = await project.post("/v1/subscribers", { external_id: "ann", email: "a@b.test" })
  const unsubscribe = `/v1/subscribers/${made.body.data.id}/unsubscribe`
  const ended = await project.post(unsubscribe, { channel: "email" })
  const quiet = await service.project()

  const { access, refusals, projects } = await told(box)
  expect(access.map(({ kind, count }) => [kind, count])).toEqual([
    ["api_keys", 4],
    ["people", 1],
    ["webhooks", 1],
    ["providers", 1],
  ])
  const [keys, people, webhooks, providers] = access
  expect(keys?.names).toEqual(["test", "test", "test", "test"])
  expect(people?.names).toEqual([email])
  expect(webhooks?.names).toEqual(["hooks.example.test"])
  expect(providers?.names).toEqual(["on"])
  expect(Date.parse(keys?.newest_at ?? "")).toBeGreaterThan(0)

  expect(projects).toBe(refusals.length)
  const ours = refusals.find(({ project_id }) => project_id === project.project_id)
  expect(ours).toMatchObject({ suppressions: 1, unsubscribes: 1, subscribers: 1 })
  expect(ours?.newest_unsubscribe_at).toBe(ended.body.data.created_at)
  expect(ours?.newest_suppression_at).toBeString()
  const none = refusals.find(({ project_id }) => project_id === quiet.project_id)
  expect(none).toMatchObject({
    ...{ suppressions: 0, newest_suppression_at: null },
    ...{ unsubscribes: 0, newest_unsubscribe_at: null, subscribers: 0 },
  })

  const [revoked] = (await told(box, true)).access
  expect(revoked).toEqual({ kind: "api_keys", count: 0, newest_at: null, names: [] })
})
