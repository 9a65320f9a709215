import { describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { auditLog } from "../../../src/audit-log/tables"
import { gamingProviders } from "../../../src/auth/social/tables"
import { newApplication } from "../../harness/application"
import { type Client, callingWith, complaints, refusal } from "../../harness/client"
import { sharedService } from "../../harness/shared-service"

const service = await sharedService()
const { store } = service

const CENTER = { enabled: true, bundle_ids: ["com.example.game"], team_id: "DEF123GHIJ" }
const PLAY = { enabled: true, client_id: "1234-a.apps.example", client_secret: "quiet-river-42" }

const put = (who: Pick<Client, "call">, path: string, body: object) =>
  who.call("PUT", path, { body })

const remove = (who: Pick<Client, "call">, path: string) => who.call("DELETE", path)

async function platformsOf() {
  const project = await service.project()
  const shop = await newApplication(service, project)
  const all = `/v1/auth/applications/${shop.id}/gaming-providers`
  const rows = () =>
    store.read.select().from(gamingProviders).where(eq(gamingProviders.application_id, shop.id))
  return { project, shop, all, rows, one: (name: string) => `${all}/${name}` }
}

describe("gaming platforms of an application", () => {
  test("are set up for an environment each, and listed with masked secrets", async () => {
    const { project, all, one } = await platformsOf()
    const center = await put(project, one("game-center"), { ...CENTER, client_id: "ignored" })
    const none = { client_id: null, client_secret: null }
    expect(center.body.data).toMatchObject({ ...CENTER, ...none, environment: "live" })
    const wanted = { ...PLAY, environment: "test" }
    const play = await put(project, one("play-games"), wanted)
    const shown = { ...wanted, client_secret: "****r-42", bundle_ids: [], team_id: null }
    expect(play.body.data).toMatchObject({ ...shown, provider: "play-games" })
    const { body } = await project.get(all)
    expect(body.data).toEqual([center.body.data, play.body.data])
  })

  test("are changed as a whole, and an absent secret keeps the stored one", async () => {
    const { project, one, rows } = await platformsOf()
    await put(project, one("play-games"), PLAY)
    const [before] = await rows()
    expect(before?.client_secret).not.toContain(PLAY.client_secret)
    const off = { enabled: false, client_id: "5678-b.apps.example" }
    const { body } = await put(project, one("play-games"), off)
    expect(body.data).toMatchObject({ ...off, client_secret: "****r-42" })
    const [after] = await rows()
    expect([after?.id, after?.client_secret]).toEqual([before?.id, before?.client_secret])
    const renewed = await put(project, one("play-games"), { ...PLAY, client_secret: "short" })
    expect(renewed.body.data.client_secret).toBe("****")
  })

  test("need the fields of their platform, and no masked secret", async () => {
    const { project, one, rows } = await platformsOf()
    const center = await put(project, one("game-center"), { enabled: true })
    expect(complaints(center)).toEqual(["bundle_ids", "team_id"])
    const { client_secret: _, ...secretless } = PLAY
    for (const body of [secretless, { ...PLAY, client_secret: "****r-42" }]) {
      const refused = await put(project, one("play-games"), body)
      expect([refused.status, JSON.stringify(refused.body)]).toEqual([
        422,
        expect.stringContaining("client_secret"),
      ])
    }
    for (const wrong of [{ bundle_ids: [] }, { bundle_ids: ["game"] }, { team_id: "a b" }])
      expect((await put(project, one("game-center"), { ...CENTER, ...wrong })).status).toBe(422)
    expect(refusal(await put(project, one("steam"), CENTER))).toEqual([404, "not_found"])
    expect(await rows()).toEqual([])
  })

  test("are removed once, and each step is in the audit log without the secret", async () => {
    const { project, one } = await platformsOf()
    const missing = await remove(project, `${one("play-games")}?environment=live`)
    expect(refusal(missing)).toEqual([404, "not_found"])
    await put(project, one("play-games"), PLAY)
    await put(project, one("play-games"), { ...PLAY, enabled: false })
    const gone = await remove(project, one("play-games"))
    expect(gone.body.data).toEqual({ id: expect.any(String), deleted: true })
    expect(refusal(await remove(project, one("play-games")))).toEqual([404, "not_found"])
    const own = eq(auditLog.target_id, gone.body.data.id)
    const entries = await store.read.select().from(auditLog).where(own).orderBy(auditLog.id)
    expect(entries.map(({ action }) => action)).toEqual(
      ["created", "updated", "deleted"].map((verb) => `gaming_provider.${verb}`),
    )
    expect(JSON.stringify(entries)).not.toContain("client_secret")
  })

  test("belong to one application: neither a foreign secret nor a foreign key reaches them", async () => {
    const { shop, all, one } = await platformsOf()
    const other = await platformsOf()
    expect((await put(shop.server(), one("play-games"), PLAY)).status).toBe(200)
    for (const who of [other.shop.server(), other.project]) {
      for (const answer of [
        await who.get(all),
        await put(who, one("play-games"), PLAY),
        await remove(who, one("play-games")),
      ])
        expect(refusal(answer)).toEqual([404, "not_found"])
    }
    const reader = await other.project.addKey({ scopes: ["auth:read"] })
    const reading = callingWith(service.app, { "x-api-key": reader.key })
    expect((await reading.get(other.all)).status).toBe(200)
    expect(refusal(await put(reading, other.one("play-games"), PLAY))).toEqual([403, "forbidden"])
  })
})
