import { describe, expect, test } from "bun:test"
import { fileUrl, readFileToken } from "../../src/inbound/file-tokens"
import { refusal } from "../harness/client"
import { movableClock } from "../harness/clock"
import { NOBODY } from "../harness/mail"
import { sharedService } from "../harness/shared-service"
import { RAW, received } from "./received"

const service = await sharedService()
const { secrets } = service.parts
const clock = movableClock()

const pathOf = (url: string) => new URL(url).pathname

describe("an attachment of a received mail", () => {
  test("has an address that needs no key, for one hour", async () => {
    clock.freeze()
    const project = await service.project()
    const file = { content: "Ding", filename: "Bericht für Ann.txt" }
    const { id } = await received(service, project, { files: [file] })
    const { status, body } = await project.get(`/v1/inbound-emails/${id}/attachments/0`)
    expect([status, body.data]).toEqual([
      200,
      {
        id: "0",
        filename: "Bericht für Ann.txt",
        content_type: "text/plain",
        size: 4,
        url: expect.stringMatching(/^http:\/\/belfry\.test\/v1\/files\/[\w.-]+$/),
        expires_at: expect.any(String),
      },
    ])
    expect(body.data.url).not.toContain(id)
    const fetched = await service.anybody.get(pathOf(body.data.url))
    expect([fetched.status, fetched.text]).toEqual([200, "Ding"])
    const { headers } = fetched
    expect(headers.get("content-type")).toBe("text/plain")
    expect(headers.get("x-content-type-options")).toBe("nosniff")
    expect(headers.get("content-security-policy")).toStartWith("sandbox")
    expect(headers.get("content-disposition")).toBe(
      "attachment; filename=\"Bericht f_r Ann.txt\"; filename*=UTF-8''Bericht%20f%C3%BCr%20Ann.txt",
    )
    clock.advance({ seconds: 3599 })
    expect((await service.anybody.get(pathOf(body.data.url))).status).toBe(200)
    clock.advance({ seconds: 2 })
    const late = await service.anybody.get(pathOf(body.data.url))
    expect(refusal(late)).toEqual([404, "not_found"])
  })

  test.each<[string | null, string, string]>([
    ["../../etc/passwd", "text/html", "passwd"],
    ["..\\..\\boot.ini", "image/svg+xml", "boot.ini"],
    ["x\r\nSet-Cookie: a=b", "text/html; charset=utf-8", "x__Set-Cookie_ a=b"],
    ['a"; filename="b.exe', "text/plain", "a__; filename=_b.exe".replace("__;", "_;")],
    ["invoice\u202efdp.exe", "application/pdf\r\nX-Evil: 1", "invoice_fdp.exe"],
    [null, "not a type", "attachment"],
    ["", "", "attachment"],
  ])("called %j of type %j is a harmless download", async (filename, content_type, shown) => {
    const project = await service.project()
    const file = { content: "<script>alert(1)</script>", filename, content_type }
    const { id } = await received(service, project, { files: [file] })
    const link = await project.get(`/v1/inbound-emails/${id}/attachments/0`)
    expect(link.body.data.filename).toBe(filename)
    const { status, headers } = await service.anybody.get(pathOf(link.body.data.url))
    expect(status).toBe(200)
    const disposition = headers.get("content-disposition") ?? ""
    expect(disposition).toStartWith("attachment; ")
    expect(decodeURIComponent(disposition.split("UTF-8''")[1] ?? "")).toBe(shown)
    expect(headers.get("x-evil")).toBeNull()
    expect(headers.get("set-cookie")).toBeNull()
    expect(headers.get("x-content-type-options")).toBe("nosniff")
    expect(headers.get("content-type")).toMatch(/^[\w/+.-]+(; ?charset=utf-8)?$/)
  })

  test("that the mail does not have, or that is lost, is not found", async () => {
    const project = await service.project()
    const lost = { content: "x", sha256: "0".repeat(64) }
    const { id } = await received(service, project, { files: [{ content: "x" }, lost] })
    for (const other of ["2", "-1", "00", "raw", "__proto__", NOBODY, "..%2F0"]) {
      const answer = await project.get(`/v1/inbound-emails/${id}/attachments/${other}`)
      expect([other, ...refusal(answer)]).toEqual([other, 404, "not_found"])
    }
    const link = await project.get(`/v1/inbound-emails/${id}/attachments/1`)
    const fetched = await service.anybody.get(pathOf(link.body.data.url))
    expect(refusal(fetched)).toEqual([404, "not_found"])
  })
})

describe("a token", () => {
  test("of the raw message fetches it as a file", async () => {
    const project = await service.project()
    const { id } = await received(service, project)
    const { url } = fileUrl(secrets, "http://belfry.test", { inbound_id: id, file: "raw" })
    const { status, text, headers } = await service.anybody.get(pathOf(url))
    expect([status, text]).toEqual([200, RAW])
    expect(headers.get("content-disposition")).toContain(`filename="${id}.eml"`)
  })

  test("that was changed in any place, made up, or made for something else is not found", async () => {
    const project = await service.project()
    const { id } = await received(service, project, { files: [{ content: "x" }] })
    const link = await project.get(`/v1/inbound-emails/${id}/attachments/0`)
    const token = pathOf(link.body.data.url).split("/").at(-1) ?? ""
    const flipped = [...token].map((char, at) => {
      const other = char === "A" ? "B" : "A"
      return `${token.slice(0, at)}${other}${token.slice(at + 1)}`
    })
    const forged = flipped.filter((other) => other !== token)
    const others = [
      ...forged.filter((_, at) => at % 7 === 0),
      token.slice(0, -1),
      `${token}A`,
      token.split(".").slice(0, 2).join("."),
      "x",
      "%00",
      id,
      secrets.seal(JSON.stringify([id, "0", "2999-01-01T00:00:00.000Z"]), "another:use:here"),
      secrets.seal("[]", "inbound:file:token"),
    ]
    const texts = new Set<string>()
    for (const other of others) {
      const answer = await service.anybody.get(`/v1/files/${other}`)
      expect([other, ...refusal(answer)]).toEqual([other, 404, "not_found"])
      texts.add(answer.body.error.message)
    }
    expect(texts.size).toBe(1)
    expect(readFileToken(secrets, token)).toEqual({ inbound_id: id, file: "0" })
  })
})
