import { expect, test } from "bun:test"
import { fieldsOf } from "../../cli/lib/client"
import { Deleted } from "../../src/http/field-schemas"
import { ApiKey, ConsoleUser } from "../../src/identity/schemas"
import { queueControlRoutes } from "../../src/jobs/routes"
import { Job } from "../../src/jobs/schemas"
import { providerConfig, Tested } from "../../src/providers/schemas"
import { accountRoutes } from "../../src/tenancy/account-routes"
import { invitationRoutes } from "../../src/tenancy/invitation-routes"
import { memberRoutes } from "../../src/tenancy/member-routes"
import { projectRoutes } from "../../src/tenancy/project-routes"
import { settingsRoutes } from "../../src/tenancy/settings-routes"
import { webhookRoutes } from "../../src/webhooks/routes"
import { FakeApi, ID, KEY } from "./fake-api"
import { belfry } from "./lines"

const names = ({ properties }: { properties: object }) => Object.keys(properties)
const parts = {} as never
const routes = [
  ...accountRoutes(parts),
  ...projectRoutes(parts),
  ...invitationRoutes(parts),
  ...memberRoutes(parts),
  ...settingsRoutes(parts),
  ...queueControlRoutes(parts),
  ...webhookRoutes(parts),
]

test.each([
  "POST /v1/accounts",
  "POST /v1/projects",
  "POST /v1/projects/{project_id}/members",
  "PATCH /v1/accounts/me/members/{user_id}",
  "POST /v1/accounts/me/members/invite",
  "PATCH /v1/settings",
  "POST /v1/admin/queues/{queue}/pause",
  "POST /v1/webhooks/{webhook_id}/pause",
  "POST /v1/webhooks/{webhook_id}/test",
  "POST /v1/webhooks/{webhook_id}/rotate-secret",
  "POST /v1/webhooks/{webhook_id}/deliveries/{delivery_id}/retry",
  "POST /v1/webhooks/{webhook_id}/replay",
] as const)("the fields of %s are those of the API", (name) => {
  const route = routes.find(({ method, path }) => `${method} ${path}` === name)
  expect(fieldsOf(name)).toEqual(names(route?.response as never))
})

test("the fields of a key, a user, a job and a deletion are those of the API", () => {
  expect(fieldsOf("PATCH /v1/api-keys/{key_id}")).toEqual(names(ApiKey))
  expect(fieldsOf("PATCH /v1/users/me")).toEqual(names(ConsoleUser))
  expect(fieldsOf("POST /v1/jobs/{job_id}/cancel")).toEqual(names(Job))
  expect(fieldsOf("POST /v1/providers/{kind}/config")).toEqual(names(providerConfig([])))
  expect(fieldsOf("POST /v1/providers/{kind}/config/{config_id}/test")).toEqual(names(Tested))
  expect(fieldsOf("DELETE /v1/projects/{project_id}")).toEqual(names(Deleted))
})

test.each([
  ["accounts create --name Acme"],
  ["accounts update --name Acme"],
  [`accounts delete ${ID}`],
  [`accounts restore ${ID}`],
  [`accounts transfer ${ID}`],
  ["projects create --name Shop"],
  [`projects update ${ID} --name Shop`],
  [`projects delete ${ID}`],
  [`projects restore ${ID}`],
  [`projects add-member ${ID} --user ${ID} --role viewer`],
  [`projects set-role ${ID} ${ID} viewer`],
  [`projects remove-member ${ID} ${ID}`],
  ["members invite kim@mailbox.test"],
  [`members set-role ${ID} admin`],
  [`members remove ${ID}`],
  [`invitations resend ${ID}`],
  [`invitations revoke ${ID}`],
  ["invitations accept belfry_invitation_1 --name Kim --password-stdin"],
  ["login --email ann@mailbox.test --password-stdin"],
  [`jobs cancel ${ID}`],
  ["setup --setup-token t --email ann@mailbox.test --password-stdin"],
  ["signup --email ann@mailbox.test --password-stdin"],
  ["password forgot ann@mailbox.test"],
  ["password reset belfry_reset_1 --password-stdin"],
  ["me update --name Ann"],
  ["me password --password-stdin"],
  ["me delete --password-stdin"],
  ["me approve BCDF-GHJK"],
  ["me mfa enroll"],
  ["me mfa verify 123456"],
  [`me sessions revoke ${ID}`],
  [`keys update ${ID} --name cd`],
  [`keys rotate ${ID}`],
  [`keys allowlist ${ID} 192.0.2.7`],
  ["webhooks create https://a.b/ --event *"],
  [`webhooks update ${ID} --event *`],
  [`webhooks delete ${ID}`],
  [`webhooks enable ${ID}`],
  [`webhooks disable ${ID}`],
  [`webhooks pause ${ID}`],
  [`webhooks rotate ${ID}`],
  [`webhooks test ${ID}`],
  [`webhooks retry ${ID} ${ID}`],
  [`webhooks replay ${ID} --since 1d`],
  ["trigger email.sent"],
  ["usage reconcile"],
  ["settings set sandbox=true"],
])("%s refuses a field that it does not give, before anything changes", async (line) => {
  using api = new FakeApi()
  const flags = ["--url", api.url, "--api-key", KEY, "--yes", "--json=ide"]
  const { exit, err } = await belfry([...line.split(" "), ...flags], { stdin: "secret\n" })
  expect([exit, api.seen]).toEqual([2, []])
  expect(JSON.parse(err).error.message).toContain('no field "ide"')
})

test("settings set leads into an object by a dot", async () => {
  using api = new FakeApi()
  api.data("PATCH /v1/settings", { inbound: { mode: "routes" } })
  const flags = ["--url", api.url, "--api-key", KEY, "--yes", "--json"]
  const pairs = ["inbound.mode=routes", "sandbox=true", "a.b=1", "a.c=null"]
  expect((await belfry(["settings", "set", ...pairs, ...flags])).exit).toBe(0)
  const body = { inbound: { mode: "routes" }, sandbox: true, a: { b: 1, c: null } }
  expect(api.seen.map((one) => one.body)).toEqual([body])
})
