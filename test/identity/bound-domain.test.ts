import { describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { now } from "../../src/core/time"
import { domains } from "../../src/domains/tables"
import { addDomain } from "../domains/acme"
import { client, complaints, refusal } from "../harness/client"
import { mail, NOBODY } from "../harness/mail"
import { sharedService } from "../harness/shared-service"

const service = await sharedService()

/** A project with two verified domains, and a key that is bound to the first one. */
async function bound() {
  const project = await service.project()
  const [own, other] = [await addDomain(project), await addDomain(project)]
  for (const { id } of [own, other]) {
    const verified = { status: "verified", verified_at: now() } as const
    await service.store.tx((tx) => tx.update(domains).set(verified).where(eq(domains.id, id)))
  }
  const wanted = { name: "shop", permission: "sending_access", domain_id: own.id }
  const made = (await project.post("/v1/api-keys", wanted)).body.data
  return { project, own, other, made, key: client(service.app, made.key) }
}

const ALLOWED = { reason: "domain_not_allowed" }

describe("a key that is bound to a domain", () => {
  test("tells the domain, and may send and nothing else", async () => {
    const { project, own, made, key } = await bound()
    expect(made).toMatchObject({ scopes: ["email:send"], domain_id: own.id })
    const { data } = (await project.get(`/v1/api-keys/${made.id}`)).body
    expect(data.domain_id).toBe(own.id)
    expect(refusal(await key.get("/v1/emails"))).toEqual([403, "forbidden"])
  })

  test("sends from that domain alone", async () => {
    const { own, other, key } = await bound()
    const from = (domain: string) => key.post("/v1/emails", mail({ from: `bell@${domain}` }))
    expect((await from(own.domain)).status).toBe(201)
    expect((await from(own.domain.toUpperCase())).status).toBe(201)
    // The operator's word for a domain, and the mailbox's own, are no exceptions.
    for (const domain of [other.domain, "example.test", "mailbox.test"]) {
      const refused = await from(domain)
      expect(refusal(refused)).toEqual([403, "forbidden"])
      expect(refused.body.error.details).toMatchObject(ALLOWED)
    }
  })

  test("sends from no name below it, though the project allows those", async () => {
    const { project, own, key } = await bound()
    await project.call("PATCH", "/v1/settings", { body: { allow_subdomains: true } })
    const below = mail({ from: `bell@news.${own.domain}` })
    expect((await project.post("/v1/emails", below)).status).toBe(201)
    expect((await key.post("/v1/emails", below)).body.error?.details).toMatchObject(ALLOWED)
  })

  test("does not borrow the default sender of the project", async () => {
    const { project, other, key } = await bound()
    const body = { default_from: `bell@${other.domain}` }
    expect((await project.call("PATCH", "/v1/settings", { body })).status).toBe(200)
    const refused = await key.post("/v1/emails", mail({ from: undefined }))
    expect(refused.body.error.details).toMatchObject(ALLOWED)
  })

  test("passes neither in a batch nor by sending again what another key sent", async () => {
    const { project, own, other, key } = await bound()
    const [good, bad] = [own, other].map(({ domain }) => mail({ from: `bell@${domain}` }))
    const strict = await key.post("/v1/emails/batch", [good, bad])
    expect(refusal(strict)).toEqual([403, "forbidden"])
    const { results } = (await key.post("/v1/emails/batch", { messages: [good, bad] })).body.data
    expect(results[0].status).toBe("queued")
    expect(results[1].error.details).toMatchObject(ALLOWED)

    const foreign = (await project.post("/v1/emails", bad)).body.id
    const again = await key.post(`/v1/emails/${foreign}/resend`)
    expect(refusal(again)).toEqual([403, "forbidden"])
    expect((await key.post(`/v1/emails/${results[0].id}/resend`)).status).toBe(201)
  })

  test("stays bound when it is rotated", async () => {
    const { project, own, other, made } = await bound()
    const next = (await project.post(`/v1/api-keys/${made.id}/rotate`)).body.data
    expect(next.domain_id).toBe(own.id)
    const key = client(service.app, next.key)
    const refused = await key.post("/v1/emails", mail({ from: `bell@${other.domain}` }))
    expect(refused.body.error.details).toMatchObject(ALLOWED)
  })

  test("sends from nowhere once its domain is deleted, though another one has its name", async () => {
    const { project, own, key } = await bound()
    await project.call("DELETE", `/v1/domains/${own.id}`)
    const again = await project.post("/v1/domains", { domain: own.domain })
    const verified = { status: "verified" } as const
    await service.store.tx((tx) =>
      tx.update(domains).set(verified).where(eq(domains.id, again.body.data.id)),
    )
    const from = mail({ from: `bell@${own.domain}` })
    expect((await project.post("/v1/emails", from)).status).toBe(201)
    expect((await key.post("/v1/emails", from)).body.error?.details).toMatchObject(ALLOWED)
  })
})

describe("a permission", () => {
  const ask = async (fields: object) =>
    (await service.project()).post("/v1/api-keys", { name: "k", ...fields })

  test("stands for scopes", async () => {
    const full = await ask({ permission: "full_access" })
    expect([full.status, full.body.data.scopes, full.body.data.domain_id]).toEqual([
      201,
      ["*"],
      null,
    ])
    const some = await ask({ permission: "sending_access", domain_id: null })
    expect([some.status, some.body.data.scopes]).toEqual([201, ["email:send"]])
    expect((await ask({ permission: null, scopes: ["email:send"] })).status).toBe(201)
  })

  test.each<[object, string]>([
    [{ permission: "sending_access", scopes: ["email:send"] }, "permission"],
    [{ permission: "reading" }, "permission"],
    [{ permission: "full_access", domain_id: NOBODY }, "domain_id"],
    [{ scopes: ["email:send"], domain_id: NOBODY }, "domain_id"],
    [{}, "scopes"],
  ])("%j is refused", async (fields, path) => {
    const refused = await ask(fields)
    expect([refused.status, ...complaints(refused)]).toEqual([422, path])
  })

  test("cannot be bound to a domain of another project", async () => {
    const { id } = await addDomain(await service.project())
    for (const domain_id of [id, NOBODY, "nothing"]) {
      const refused = await ask({ permission: "sending_access", domain_id })
      expect(refusal(refused)).toEqual([404, "not_found"])
    }
  })

  test("is no more than the caller has", async () => {
    const project = await service.project()
    const scopes = ["api_keys:write", "email:send"]
    const { key } = (await project.post("/v1/api-keys", { name: "k", scopes })).body.data
    const narrow = client(service.app, key)
    const refused = await narrow.post("/v1/api-keys", { name: "k", permission: "full_access" })
    expect(refusal(refused)).toEqual([403, "forbidden"])
  })
})
