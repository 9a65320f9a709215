import { expect, test } from "bun:test"
import { newApplication, signedUp } from "../harness/application"
import { sharedService } from "../harness/shared-service"
import { onTerminal } from "./belfry"
import { belfry } from "./lines"

const service = await sharedService()
const { url } = service.listen()

test("an organization is made, changed, given members and deleted", async () => {
  const project = await service.project()
  const shop = await newApplication(service, project, {
    redirect_urls: ["https://app.example.test/join"],
  })
  const [ann, bob] = [await signedUp(service, shop), await signedUp(service, shop)]
  const env = { BELFRY_URL: url, BELFRY_API_KEY: project.key }
  const run = async (...words: string[]) => {
    const { exit, out, err } = await belfry(["orgs", ...words, "--yes"], { env })
    return { exit, err, data: exit === 0 ? JSON.parse(out) : undefined }
  }
  const { id } = (await run("create", "--name", "Acme", "--metadata", "plan=gold")).data
  const changed = await run("update", id, "--mfa-required", "on", "--domain", "users.test")
  expect(changed.data).toMatchObject({
    ...{ name: "Acme", slug: "acme", metadata: { plan: "gold" }, mfa_required: true },
    allowed_email_domains: ["users.test"],
  })
  expect((await run("update", id, "--domain", "none")).data.allowed_email_domains).toEqual([])
  const own = ["--role", "owner", "--permission", "invoices:read"]
  const owner = await run("members", "add", id, ann.id, ...own)
  expect(owner.data).toMatchObject({ role: "owner", permissions: ["invoices:read"] })
  expect((await run("members", "add", id, bob.id)).data.role).toBe("member")
  expect((await run("members", "add", id, bob.id)).exit).toBe(5)
  const none = await run("members", "update", id, ann.id, "--permission", "none")
  expect(none.data).toMatchObject({ role: "owner", permissions: [] })
  expect((await run("members", "rm", id, ann.id)).exit).toBe(5)

  const shown = await onTerminal(["orgs", "members", "list", id, "--no-color"], { env })
  expect(shown.out).toMatch(new RegExp(`${ann.email} .*owner`))
  const end = bob.id.slice(-8)
  expect((await run("members", "update", id, end, "--role", "admin")).data.role).toBe("admin")
  expect((await run("members", "rm", id, bob.id)).exit).toBe(0)
  const hers = await onTerminal(["orgs", "list", "--user-id", ann.id, "--no-color"], { env })
  expect(hers.out).toMatch(/Acme .*owner/)
  const redirect = ["--redirect-url", "https://app.example.test/join"]
  const invited = await run("invitations", "create", id, "kim@mailbox.test", ...redirect)
  expect(invited.data).toMatchObject({ email: "kim@mailbox.test", status: "pending" })
  expect((await run("invitations", "list", id)).data).toHaveLength(1)
  expect((await run("invitations", "rm", id, invited.data.id)).exit).toBe(0)
  expect((await run("rm", id)).data).toEqual({ id, deleted: true })
  expect((await run("get", id)).exit).toBe(3)
})
